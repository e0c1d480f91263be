"""Part two: custom gradients inside custom gradients, and what each order gives."""

import warnings

import tinygrad_cg as tf
from tinygrad_cg._tour.console import code, heading, number, say, table
from tinygrad_cg._tour.custom_rules import derivative

POINT = 2.0


def cube(x):
    """Return the same function without any rule: the truth to compare with."""
    return x * x * x


def square_of(function):
    """Return h(op(x)) with h(y) = y**2: the upstream gradient then depends on x."""
    return lambda x: tf.square(function(x))


def make_op(factor: float):
    """Return example 1: the gradient function is itself decorated; op3 is factor * ddy."""

    @tf.custom_gradient
    def op(x):
        @tf.custom_gradient
        def grad_fn(dy):
            def grad_grad_fn(ddy):
                return factor * ddy

            return 3 * x**2 * dy, grad_grad_fn

        return x**3, grad_fn

    return op


def make_fused(second_order):
    """Return example 2 with one argument: second_order(x, ddy) is the rule of the first order."""

    @tf.custom_gradient
    def op(x):
        def first_order_gradient(dy):
            @tf.custom_gradient
            def first_order_custom(unused_x):
                def second_order_for_x(ddy):
                    return second_order(x, ddy)

                return 3 * x**2, second_order_for_x

            return dy * first_order_custom(x)

        return x**3, first_order_gradient

    return op


def make_fused_with_dy():
    """Return example 2 with two arguments, so that the inner rule returns two gradients."""

    @tf.custom_gradient
    def op(x):
        def first_order_gradient(dy):
            @tf.custom_gradient
            def first_order_custom(unused_x, unused_dy):
                def second_order_and_transpose(ddy):
                    return 6 * x * dy * ddy, 3 * x**2 * ddy

                return 3 * x**2 * dy, second_order_and_transpose

            return first_order_custom(x, dy)

        return x**3, first_order_gradient

    return op


def at_point(function, order: int) -> str:
    """Return the derivative at the point, as text; a ValueError gives that name."""
    try:
        return number(derivative(function, order)(tf.constant(POINT)))
    except ValueError:
        return ValueError.__name__


def run_and_catch(function, *arguments):
    """Call, and give the result with the custom gradient warnings that came on the way."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", tf.CustomGradientWarning)
        result = function(*arguments)
    return result, [str(warning.message) for warning in caught]


def gradient_by_upstream(op, upstream: float):
    """Return d(gradient of op)/d(its upstream), the actual rule of grad_fn."""
    x, dy = tf.constant(POINT), tf.constant(upstream)
    with tf.GradientTape() as outer:
        outer.watch(dy)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = op(x)
        gradient = inner.gradient(y, x, output_gradients=dy)
    return outer.gradient(gradient, dy)


def show() -> None:
    heading("2. Rules inside rules")
    say(
        f"""op(x) = x**3 at x = {POINT:g}, with its correct first derivative, and an inner rule
        with a factor that is easy to recognise. TensorFlow gives the same numbers, and its
        documentation calls them unintuitive."""
    )
    show_first()
    show_second()


def show_first() -> None:
    print("\nExample 1: the gradient function is decorated")
    code(
        """
        @tf.custom_gradient
        def op(x):
            @tf.custom_gradient
            def grad_fn(dy):                          # op2 = 3 * x**2 * dy
                def grad_grad_fn(ddy):                # op3 = K * ddy
                    return K * ddy
                return 3 * x**2 * dy, grad_grad_fn
            return x**3, grad_fn
        """
    )
    op, transposed = make_op(1000.0), make_op(12.0)
    rows, messages = run_and_catch(
        lambda: [
            (name, *(at_point(function, order) for order in (1, 2)), at_point(truth, 2))
            for name, function, truth in (
                ("op(x), K = 1000", op, cube),
                ("op(x)**2, K = 1000", square_of(op), square_of(cube)),
                ("op(x)**2, K = 12", square_of(transposed), square_of(cube)),
            )
        ]
    )
    table(("", "order 1", "order 2", "correct order 2"), rows)
    inner = 2 * 1000.0
    say(
        f"""op3 is the derivative of grad_fn with respect to dy, not the second derivative of
        op with respect to x. On its own, op(x) has the upstream gradient 1, which no tape watches:
        the inner rule is not used, and the operations of op2 are differentiated. In op(x)**2 the
        upstream gradient 2 * op(x) depends on x, so op3 is used: op2 with
        dy = 2 * op3(1) = {inner:g} gives 3 * 2**2 * {inner:g} = {3 * POINT**2 * inner:g},
        and the path through the x in op2 is lost. Even K = 12, the correct derivative with respect
        to dy, loses it."""
    )
    watched, _ = run_and_catch(gradient_by_upstream, op, 1.5)
    say(
        f"""If a tape watches the upstream gradient itself, op3 shows directly: d(gradient)/d(dy) =
        {number(watched)}, where 3 * x**2 = {number(3 * POINT**2)} would be right."""
    )
    for message in messages[:1]:
        say(f"The library warns about it once: {message}")


def show_second() -> None:
    print("\nExample 2: the gradient function wraps a decorated one")
    code(
        """
        @tf.custom_gradient
        def op(x):
            def first_order_gradient(dy):
                @tf.custom_gradient
                def first_order_custom(unused_x):     # as many arguments as
                    def second_order(ddy):            # gradients returned here
                        return 6 * x * ddy
                    return 3 * x**2, second_order
                return dy * first_order_custom(x)
            return x**3, first_order_gradient
        """
    )
    as_printed = make_fused(lambda x, ddy: (6 * x * ddy, 3 * x**2 * ddy))
    variants = (
        ("one argument, 6 * x * ddy (correct)", make_fused(lambda x, ddy: 6 * x * ddy)),
        ("two arguments, correct rules", make_fused_with_dy()),
        ("one argument, 1000 * ddy (wrong)", make_fused(lambda x, ddy: 1000.0 * ddy)),
        ("as printed: one argument, two gradients", as_printed),
    )
    rows = [
        (name, *(at_point(op, n) for op, n in ((op, 1), (op, 2), (square_of(op), 2), (op, 3))))
        for name, op in (*variants, ("x**3 itself", cube))
    ]
    table(("", "order 1", "order 2", "of op**2", "order 3"), rows)
    say(
        """Here x reaches the inner rule as an argument, so the inner rule is the second
        derivative. dy stays outside and is differentiated as usual. Each order is as correct as
        its rule. The wrong rule is constant in x, so order 3 is None."""
    )
    try:
        derivative(as_printed, 2)(tf.constant(POINT))
    except ValueError as error:
        say(f"The variant as printed stops at order 2: {str(error).splitlines()[0]}")
