"""Every registered operation, from its record: values, dtypes, shapes and derivatives.

Nothing here is about one operation: adding one is adding its record.
"""

import importlib

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tinygrad_cg as tf
from tests.support.op_cases import (
    Decomposed,
    Example,
    elementwise_example,
    examples,
    first_gradients,
    generator,
    is_elementwise,
    names,
    numeric_gradients,
    second_gradients,
)
from tests.support.references import reference, takes
from tinygrad_cg._core.kinds import INEXACT
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg._ops.composition import ARRAYS
from tinygrad_cg._transforms.batching import vmap

ALL = names()
WITH_REFERENCE = [name for name in ALL if reference(OPS[name]) is not None]
ELEMENTWISE = [name for name in ALL if is_elementwise(OPS[name])]
OF_FLOATS = [name for name in ELEMENTWISE if takes(OPS[name], float)]
DIFFERENTIABLE = [name for name in ALL if OPS[name].rules is not None]
CONSTANT = [name for name in ALL if OPS[name].rules is None]
REDUCTIONS = [name for name in ALL if OPS[name].kind == "reduction"]
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 700.0, -800.0])
TOLERANCES = {
    "float16": 2e-3,
    "float32": 2e-6,
    "float64": 1e-14,
    "complex64": 2e-6,
    "complex128": 1e-14,
}
WIDE = {"f": np.float64, "c": np.complex128}


def assert_same(actual, expected, rtol):
    """Equal to rounding, with NaN and infinities at the same positions."""
    assert actual.shape == expected.shape
    scale = np.nanmax(np.abs(expected[np.isfinite(expected)]), initial=1.0)
    with np.errstate(all="ignore"):
        assert_allclose(actual, expected, rtol=rtol, atol=rtol * float(scale))


OF_COMPLEX = [
    name for name in DIFFERENTIABLE if is_elementwise(OPS[name]) and takes(OPS[name], complex)
]
FLOATS_ALONE = {name for name in ALL if OPS[name].dtypes == INEXACT}  # another takes the rest


def refuses(example: Example, dtype) -> bool:
    """Return True if the record does not take this dtype; the operation must say so then."""
    if takes(example.primitive, dtype):
        return False
    if example.params.get("axis") == () and example.primitive.name in ("max", "min"):
        return False  # nothing is compared
    with pytest.raises(TypeError):
        example.run(*[operand.astype(dtype) for operand in example.cast(dtype)])
    return True


def with_integers(example: Example, dtype) -> Example:
    """The example on integers, which are positive wherever the operand is not near 0."""
    operands = [
        operand
        if i in example.fixed or operand.dtype.kind in "bi"
        else np.clip(np.ceil(np.abs(operand)), 0, 3)
        for i, operand in enumerate(example.operands)
    ]
    changed = example._replace(operands=tuple(operands))
    return changed._replace(operands=changed.cast(dtype))


@pytest.mark.quick
@pytest.mark.parametrize("name", ALL)
def test_a_record_is_complete(name):
    record = OPS[name]
    assert record.name == name
    assert examples(name)
    assert all(
        np.isfinite(operand).all() for example in examples(name) for operand in example.operands
    )
    assert reference(record) is not None or record.linear, "only adjoints go without reference"


@pytest.mark.parametrize(
    "dtype", [pytest.param("float64", marks=pytest.mark.quick), "float32", "float16"]
)
@pytest.mark.parametrize("name", WITH_REFERENCE)
def test_values_are_the_references(name, dtype):
    for example in examples(name):
        if refuses(example, dtype):
            continue
        operands = example.cast(dtype)
        wide = [operand.astype(WIDE.get(operand.dtype.kind, operand.dtype)) for operand in operands]
        result = example.call(*map(tf.constant, operands)).numpy()
        expected = example.reference(*wide)
        assert_same(np.asarray(result), expected.astype(result.dtype), TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64"])
@pytest.mark.parametrize("name", [name for name in WITH_REFERENCE if name not in FLOATS_ALONE])
def test_integers_where_a_record_takes_them(name, dtype):
    for example in alike(name):
        example = with_integers(example, dtype)
        if refuses(example, dtype):
            continue
        operands = example.operands
        result = example.run(*operands)
        if result.dtype.kind == "f":
            operands = [
                operand if operand.dtype.kind == "c" else operand.astype("d")
                for operand in operands
            ]
        rtol = TOLERANCES.get(result.dtype.name, 0)
        assert_same(result, example.reference(*operands).astype(result.dtype), rtol)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in ALL
        for dtype in ("float64", "float32", "float16", "int32", "bool", "complex64")
        if name not in FLOATS_ALONE or np.dtype(dtype).kind in "fc"
    ],
)
def test_the_abstract_result_is_the_runs(name, dtype):
    for example in examples(name) if dtype.startswith("float") else alike(name):
        example = with_integers(example, dtype) if dtype in ("int32", "bool") else example
        if refuses(example, dtype):
            continue
        operands = example.cast(dtype)
        result = example.run(*operands)
        aval = example.primitive.abstract(*example.avals(*operands), **example.params)
        assert (tuple(aval.shape), aval.dtype) == (result.shape, result.dtype)


def alike(name):
    """An elementwise operation's examples on operands of one shape; all of another's."""
    return [
        example
        for example in examples(name)
        if not is_elementwise(example.primitive)
        or len({operand.shape for operand in example.operands}) == 1
    ]


# Derivatives ---------------------------------------------------------------------------------


def with_weights(example):
    result = example.run(*example.operands)
    rng = generator(example.primitive)
    return weights_like(result, rng), [
        weights_like(example.operands[i], rng) for i in example.real()
    ]


def weights_like(x, rng):
    """Random numbers from 0.5 to 1.5, complex where `x` is."""
    directions = rng.uniform(0.5, 1.5, x.shape)
    return directions + 1j * rng.uniform(0.5, 1.5, x.shape) if x.dtype.kind == "c" else directions


def normal_like(x, rng):
    """Random numbers of mean 0, complex where `x` is."""
    weights = rng.normal(size=x.shape)
    return weights + 1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else weights


def real_product(weights, values):
    """The real inner product: what the gradient by an upstream of `weights` is of."""
    return np.sum(np.real(np.conj(weights) * values))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_first_derivatives_are_finite_differences(name):
    for example in examples(name):
        weights, _ = with_weights(example)
        gradients = first_gradients(example, example.operands, weights)
        expected = numeric_gradients(
            lambda *moved, example=example, weights=weights: real_product(
                weights, example.run(*moved)
            ),
            example.operands,
            example.real(),
            1e-5,
        )
        for actual, numeric in zip(gradients, expected, strict=True):
            assert actual.dtype in (np.float64, np.complex128)
            assert_allclose(actual, numeric, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_second_derivatives_are_finite_differences_of_the_first(name):
    for example in examples(name):
        weights, directions = with_weights(example)

        def slope(*moved, example=example, weights=weights, directions=directions):
            first = first_gradients(example, moved, weights)
            return sum(
                real_product(way, gradient) for gradient, way in zip(first, directions, strict=True)
            )

        gradients = second_gradients(example, example.operands, weights, directions)
        expected = numeric_gradients(slope, example.operands, example.real(), 1e-5)
        for actual, numeric in zip(gradients, expected, strict=True):
            assert_allclose(actual, numeric, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_float32_derivatives_are_those_of_float64(name):
    for example in examples(name):
        weights, directions = with_weights(example)
        wide = first_gradients(example, example.operands, weights)
        wide += second_gradients(example, example.operands, weights, directions)
        operands = example.cast("float32")
        narrow_weights = weights.astype(example.run(*operands).dtype)
        narrow_ways = [
            way.astype(example.cast("float32")[i].dtype)
            for i, way in zip(example.real(), directions, strict=True)
        ]
        narrow = first_gradients(example, operands, narrow_weights)
        narrow += second_gradients(example, operands, narrow_weights, narrow_ways)
        for actual, expected in zip(narrow, wide, strict=True):
            assert actual.dtype in (np.float32, np.complex64)
            assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CONSTANT)
def test_what_has_no_rule_has_no_gradient(name):
    for example in examples(name):
        tensors = [tf.constant(operand) for operand in example.operands]
        with tf.GradientTape() as tape:
            tape.watch([tensors[i] for i in example.real()])
            result = example.call(*tensors)
        if result.dtype.kind in "fc":
            assert tape.gradient(result, tensors) == [None] * len(tensors)


@pytest.mark.parametrize("name", [name for name in ALL if OPS[name].linear])
def test_linear_records_are_linear(name):
    for example in examples(name):
        if len(example.fixed) == len(example.operands):
            continue
        others = [
            operand if i in example.fixed else normal_like(operand, generator(example.primitive))
            for i, operand in enumerate(example.operands)
        ]
        mixed = [
            operand if i in example.fixed else 2 * operand - 3 * other
            for i, (operand, other) in enumerate(zip(example.operands, others, strict=True))
        ]
        combined = 2 * example.run(*example.operands) - 3 * example.run(*others)
        assert_allclose(example.run(*mixed), combined, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
@pytest.mark.parametrize("name", OF_COMPLEX)
def test_complex_derivatives_are_finite_differences(name, dtype):
    for example in alike(name):
        rng = generator(example.primitive)
        operands = tuple(
            operand
            if operand.dtype == bool
            else np.asarray(operand + 1j * rng.uniform(0.1, 1, operand.shape))
            for operand in example.operands
        )
        example = example._replace(operands=operands)
        result = example.run(*operands)
        weights = np.asarray(rng.uniform(0.5, 1.5, result.shape), result.dtype)
        if result.dtype.kind == "c":
            weights = weights + 1j * rng.uniform(0.5, 1.5, result.shape)
        kept = example.run(*example.cast(dtype)).dtype
        gradients = first_gradients(example, example.cast(dtype), weights.astype(kept))
        expected = numeric_gradients(
            lambda *moved, example=example, weights=weights: np.sum(
                np.real(np.conj(weights) * example.run(*moved))
            ),
            operands,
            example.real(),
            1e-6,
        )
        for actual, numeric in zip(gradients, expected, strict=True):
            assert actual.dtype == dtype
            rtol = 1e-6 if dtype == "complex128" else 1e-3
            assert_allclose(actual, numeric, rtol=rtol, atol=rtol)


# Decompositions ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [name for name in ALL if OPS[name].decomposition])
def test_a_decomposition_is_the_operation(name, dtype):
    """On arrays and on tensors, with the gradients of both orders."""
    record = OPS[name]
    for example in examples(name):
        operands = example.cast(dtype)
        expected = example.run(*operands)
        result = record.decomposition(ARRAYS, *operands, **example.params)
        assert result.dtype == expected.dtype
        assert_same(result, expected, TOLERANCES[dtype])

        parts = Decomposed(*example)
        weights, directions = with_weights(example)
        pairs = zip(
            first_gradients(parts, example.operands, weights)
            + second_gradients(parts, example.operands, weights, directions),
            first_gradients(example, example.operands, weights)
            + second_gradients(example, example.operands, weights, directions),
            strict=True,
        )
        for actual, wanted in pairs:
            assert_allclose(actual, wanted, rtol=1e-11, atol=1e-11)


# Errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ALL if OPS[name].errors])
def test_errors_say_what_is_wrong(name):
    for wrong in OPS[name].errors:
        with pytest.raises(wrong.error, match=wrong.words):
            OPS[name].function(*wrong.operands, **wrong.params)


# Spellings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ALL if OPS[name].spellings])
def test_spellings_differ_by_their_name_alone(name):
    """Those of NumPy give what NumPy's own function gives, dtype and all."""
    record, example = OPS[name], alike(name)[0]
    for spelling in record.spellings:
        index, _, last = spelling.rpartition(".")
        function = getattr(importlib.import_module(f"tinygrad_cg.{index}"), last)
        for dtype in ("float64", "float32"):
            operands = example.cast(dtype)
            result = function(*map(tf.constant, operands))
            assert_array_equal(result, record.function(*map(tf.constant, operands)))
            if index == "numpy":
                expected = getattr(np, last)(*operands)
                assert result.dtype == expected.dtype
                assert_same(result.numpy(), expected, TOLERANCES[dtype])


def test_every_spelling_is_some_where():
    """A namespace that no table spells, or a name that stands twice, is a mistake in a record."""
    spelled = [spelling for record in OPS.values() for spelling in record.spellings]
    assert len(spelled) == len(set(spelled))
    assert {value.rpartition(".")[0] for value in spelled} == {
        "bitwise",
        "keras.ops",
        "math",
        "numpy",
    }


# Layouts and edges ---------------------------------------------------------------------------


def layouts(operand):
    """The same values in memory of other kinds."""
    yield operand.copy(order="F")
    padded = np.empty([2 * size for size in operand.shape], operand.dtype)
    every_other = padded[(*[slice(None, None, 2)] * operand.ndim, ...)]
    every_other[...] = operand
    yield every_other
    backwards = (*[slice(None, None, -1)] * operand.ndim, ...)
    yield operand[backwards].copy()[backwards]
    frozen = operand.copy()
    frozen.setflags(write=False)
    yield frozen
    if operand.ndim:
        yield np.concatenate([operand[:1]] * 3 + [operand])[3:]
    yield operand.astype(operand.dtype.newbyteorder())


@pytest.mark.parametrize("name", ALL)
def test_the_layout_in_memory_makes_no_difference(name):
    for example in examples(name):
        expected = example.run(*example.operands)
        for operands in zip(*map(layouts, example.operands), strict=False):
            copies = [operand.copy() for operand in operands]
            if all(operand.dtype.isnative for operand in operands):
                assert_same(example.run(*operands), expected, 1e-14)
            result = example.call(*operands)
            assert_same(np.asarray(result.numpy()), expected, 1e-14)
            for operand, copy in zip(operands, copies, strict=True):
                assert_array_equal(operand, copy)


def of_fitting_shapes(*groups):
    """Each elementwise operation with each group that has a shape for each of its operands."""
    return [
        (name, shapes)
        for name in ELEMENTWISE
        for shapes in groups
        if len(shapes) == len(OPS[name].inputs)
    ]


@pytest.mark.parametrize(
    ("name", "shapes"),
    of_fitting_shapes(
        ((),),
        ((0,),),
        ((2, 0, 3),),
        ((1,),),
        ((1, 1, 1, 1, 2),),
        ((), ()),
        ((0,), ()),
        ((0, 3), (3,)),
        ((0, 1), (1, 4)),
        ((2, 1, 3), (4, 1)),
        ((3, 1, 2, 1, 2), (1, 2, 1, 3, 1)),
        ((), (), ()),
        ((0,), (1,), ()),
        ((2, 1), (), (1, 3)),
        ((3, 1, 2, 1, 2), (2, 1, 3, 1), (2, 1, 1, 2)),
    ),
    ids=str,
)
def test_elementwise_shapes(name, shapes):
    record = OPS[name]
    example = elementwise_example(record, generator(record), shapes)
    result = example.call(*map(tf.constant, example.operands))
    expected = example.reference(*example.operands)
    assert_same(np.asarray(result.numpy()), expected.astype(result.dtype), 1e-14)
    weights = np.ones(result.shape, result.dtype)
    for i, gradient in zip(
        example.real(), first_gradients(example, example.operands, weights), strict=True
    ):
        assert gradient.shape == example.operands[i].shape


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [name for name in OF_FLOATS if reference(OPS[name])])
def test_nan_and_infinity(name, dtype):
    record = OPS[name]
    values = SPECIAL.astype(dtype)
    grids = np.meshgrid(*[values] * len(record.inputs), indexing="ij")
    for example in {str(example.params): example for example in examples(name)}.values():
        result = example.run(*grids)
        expected = example.reference(*grids)
        with np.errstate(all="ignore"):
            assert_allclose(result, expected.astype(result.dtype), rtol=2e-6, atol=1e-30)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", [name for name in REDUCTIONS if reference(OPS[name])])
def test_nan_and_infinity_in_reductions(name, special):
    for example in examples(name):
        (operand,) = example.operands
        for index in ((0,) * operand.ndim, (-1,) * operand.ndim):
            spoiled = operand.copy()
            spoiled[index] = special
            assert_same(example.run(spoiled), example.reference(spoiled), 1e-14)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)], ids=str)
@pytest.mark.parametrize("name", [name for name in REDUCTIONS if reference(OPS[name])])
def test_empty_reductions(name, shape):
    for example in examples(name):
        empty = np.zeros(shape)
        for axis in range(len(shape)):
            over = (axis,) if isinstance(example.params["axis"], tuple) else axis
            moved = example._replace(params=example.params | {"axis": over})
            try:
                expected = moved.reference(empty)
            except ValueError:
                with pytest.raises(ValueError, match=r"empty axis has no identity"):
                    moved.run(empty)
            else:
                assert_array_equal(moved.run(empty), expected)


def test_every_record_has_a_batching_rule():
    assert [name for name in ALL if not (OPS[name].batch or is_elementwise(OPS[name]))] == []


@pytest.mark.parametrize("name", ALL)
def test_batches_are_loops(name):
    """A batch of each operand in turn; one that is not drawn, such as indices, is rolled."""
    for example in examples(name):
        rng = generator(example.primitive)
        for i, operand in enumerate(example.operands):
            operands = list(map(tf.constant, example.operands))
            if operand.dtype.kind == "f":
                stack = operand + rng.uniform(0, 0.01, (4, *operand.shape))
            else:
                stack = np.stack([np.roll(operand, shift) for shift in range(4)])

            def call(operand, i=i, operands=operands, example=example):
                return example.call(*operands[:i], operand, *operands[i + 1 :])

            result = vmap(call)(tf.constant(stack)).numpy()
            for row, moved in zip(result, stack, strict=True):
                assert_allclose(row, call(tf.constant(moved)).numpy(), rtol=1e-13, atol=1e-13)


# Forward mode --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ALL if OPS[name].rules is not None])
def test_forward_mode_is_the_adjoint_of_reverse_mode(name):
    """<weights, tangent> = <gradient, direction>; and again for the gradient's own tangent."""
    for example in examples(name):
        rng = generator(example.primitive)
        tensors = list(map(tf.constant, example.operands))
        sources = [tensors[i] for i in example.real()]
        ways = [tf.constant(normal_like(source, rng)) for source in sources]
        with tf.autodiff.ForwardAccumulator(sources, ways) as accumulator:
            with tf.GradientTape() as tape:
                tape.watch(sources)
                result = example.call(*tensors)
            if result.dtype.kind not in "fc":
                continue
            weights = tf.constant(normal_like(result, rng))
            gradients = tape.gradient(result, sources, output_gradients=weights)
        tangent = accumulator.jvp(result, "zero").numpy()
        pairs = list(zip(gradients, ways, strict=True))
        products = [
            real_product(gradient.numpy(), way.numpy())
            for gradient, way in pairs
            if gradient is not None
        ]
        product = real_product(weights.numpy(), tangent)
        assert_allclose(product, sum(products), rtol=1e-10, atol=1e-12)
        operands = tuple(example.operands)
        directions = [way.numpy() for way in ways]
        expected = second_gradients(example, operands, weights.numpy(), directions)
        for gradient, source, wanted in zip(gradients, sources, expected, strict=True):
            product = None if gradient is None else accumulator.jvp(gradient)
            product = np.zeros(source.shape, source.dtype) if product is None else product.numpy()
            assert_allclose(product, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", [name for name in ALL if OPS[name].inputs == ("x", "indices")])
def test_a_batch_of_operands_and_indices_together(name):
    for example in examples(name):
        x, indices = example.operands
        rng = generator(example.primitive)
        stacks = rng.normal(size=(3, *x.shape)), np.stack([np.roll(indices, k) for k in range(3)])
        both = tf.constant(np.arange(3))

        def call(k, example=example, stacks=stacks):
            return example.call(*[tf.gather(tf.constant(stack), k) for stack in stacks])

        result = vmap(call)(both).numpy()
        for k in range(3):
            assert_array_equal(result[k], call(tf.constant(k)).numpy())
