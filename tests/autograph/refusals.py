"""Functions that cannot be transformed, what the error says, and the line that it names."""

import itertools

import numpy as np

import tinygrad_cg as tf

CASES = []


def case(words, line, kind=tf.errors.AutographError):
    """Note a function with words of its error, and the line of its text that the error shows."""

    def note(f):
        CASES.append((f, words, line, kind))
        return f

    return note


@case(
    "`y` is a float32 tensor of shape () after one branch and a float32 tensor of shape (2,)",
    "if x > 0:",
)
def shapes_differ(x):
    if x > 0:
        y = x * 2.0
    else:
        y = tf.stack([x, x])
    return tf.reduce_sum(y)


@case(
    "`y` is a float32 tensor of shape () after one branch and a float64 tensor of shape ()",
    "if x > 0:",
)
def dtypes_differ(x):
    y = x
    if x > 0:
        pass
    else:
        y = tf.cast(x, tf.float64)
    return y


@case(
    "`y` gets a value only in one branch of the `if`, but is read later. The condition is a tensor",
    "if x > 0:",
)
def assigned_in_one_case(x):
    if x > 0:
        y = x * 2.0
    return y


@case(
    "`y` gets a value only in one branch of the `if`, but is read later. The condition is a tensor",
    "if x > 0:",
)
def deleted_in_one_case(x):
    y = x * 2.0
    if x > 0:
        del y
    return y


@case("returns a float32 tensor of shape () in some cases and None", "def sometimes_nothing(x):")
def sometimes_nothing(x):
    for _ in range(2):
        if x > 0:
            return x
        x = x + 1.0


@case(
    "the result is a float32 tensor of shape () after one branch and None after the other",
    "if x > 0:",
)
def none_or_tensor(x):
    if x > 0:
        return x
    return None


@case("the result is a tuple of 2 after one branch and a float32 tensor", "if x > 0:")
def structures_differ(x):
    if x > 0:
        return x, x
    return x


@case("`label` is the str 'big' after one branch and the str 'small' after", "if x > 0:")
def strings(x):
    label = "small"
    if x > 0:
        label = "big"
    return x if label == "big" else -x


@case("`ys` is a list of 1 after one branch and a list of 0 after the other", "if x > 0:")
def appends_in_branch(x):
    ys = []
    if x > 0:
        ys.append(x)
    return tf.add_n([x, *ys])


@case("`ys` grows in a loop whose number of rounds depends on a tensor", "while x < 10.0:")
def appends_in_loop(x):
    ys = []
    while x < 10.0:
        x = x * 2.0
        ys.append(x)
    return tf.add_n(ys)


@case(
    "`y` is a float32 tensor of shape (1,) before the loop body and a float32 tensor of shape (2,) "
    "after it. The number of rounds depends on a tensor, so the structure, shape and dtype must",
    "while x",
)
def grows_in_loop(x):
    y = tf.stack([x])
    while x < 10.0:
        y = tf.concat([y, y], 0)
        x = x * 2.0
    return tf.reduce_sum(y)


@case("`y` has no value before the loop, but is read after it. The number", "while x < 10.0:")
def undefined_before_loop(x):
    while x < 10.0:
        y = x * 3.0
        x = x * 2.0
    return y


@case("`raise` in a branch or loop whose condition is a tensor", "raise ValueError(")
def raises(x):
    if x > 0:
        raise ValueError("positive")
    return x


@case("`yield` in a branch or loop whose condition is a tensor", "if x > 0:")
def yields(x):
    def pieces():
        yield x
        if x > 0:
            yield x * 2.0

    return sum(pieces())


@case("truth value of a tensor of shape (2,) is ambiguous", None, ValueError)
def truth_of_many(x):
    if tf.stack([x, x]) > 0:
        return x
    return -x


@case(
    "`y` is a float32 tensor of shape (2,) after one branch and a float32 tensor of shape ()",
    "if x > 0:",
)
def handles_the_error(x):
    try:
        y = x
        if x > 0:
            y = tf.stack([x, x])
    except TypeError:
        y = x * 0.0
    return tf.reduce_sum(y)


class Log:
    def __init__(self):
        self.lines = []


@case("`log.lines` is a list of 1 after one branch and a list of 0 after the other", "if x > 0:")
def appends_to_an_attribute(x):
    log = Log()
    if x > 0:
        log.lines.append("positive")
    return x * len(log.lines)


@case("`counts` is an array after one branch and an array with other elements", "if x > 0:")
def writes_into_an_array(x):
    counts = np.zeros(2)
    if x > 0:
        counts[0] = 1.0
    return x * counts.sum()


@case("`else` gives a float32 tensor of shape () and None", "y = x if x > 0 else None")
def expression_of_none(x):
    y = x if x > 0 else None
    return x if y is None else y


namespace = {}
exec(  # no source can be had of it
    compile("def inside(x):\n    if x > 0:\n        return x\n    return -x\n", "<made>", "exec"),
    namespace,
)


@case("the source of `inside` is not available", None, TypeError)
def without_source(x):
    return namespace["inside"](x)


@tf.autograph.experimental.do_not_convert
def left_alone(x):
    if x > 0:
        return x
    return -x


@case("`left_alone` is not transformed", "if x > 0:", TypeError)
def calls_what_is_left(x):
    return left_alone(x)


@case("has no value while", "if float(x) > 0:", TypeError)
def asks_for_a_value(x):
    if float(x) > 0:
        return x
    return -x


@case("has no value while", "[w for w in (0.5, 1.5) if x > w]", TypeError)
def filters(x):
    return tf.add_n([w for w in (0.5, 1.5) if x > w])


@case("has no value while", "case 2.0:", TypeError)
def matches(x):
    match x:
        case 2.0:
            return x
        case _:
            return -x


@case(
    "`count` ran more than 1000 rounds, and only a tensor can end the loop", "in itertools.count():"
)
def no_end_but_by_a_tensor(x):
    for _ in itertools.count():
        x = x * 0.5
        if x < 0.1:
            return x
