"""Convolution and its adjoints, each the rule of another."""

from __future__ import annotations

from typing import Any

from tinygrad_cg_kernels.linear import conv as kconv
from tinygrad_cg_kernels.linear.conv import Geometry

from .._core.conversion import convert_operands, promote
from .._core.kinds import NUMBERS
from .._core.primitive import Primitive
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError
from .define import Case, operation
from .shape import reshape
from .validation import broadcast_shapes
from .windows import ImageLayout

# Images (..., n, height, width, channels) and filters (..., height, width, channels of a group,
# outputs); the axes before the last four broadcast, which only batching uses.

_UNIT = Geometry()
_STEPS = Geometry((2, 1), ((1, 0), (2, 1)), (1, 2))
_GROUPS = Geometry((1, 2), ((1, 1), (0, 0)), (1, 1), 2)
_ALONE = Geometry((1, 1), ((0, 1), (1, 0)), (2, 1), 2)


def _size(shape: tuple[int, ...]) -> tuple[int, int]:
    return shape[-3], shape[-2]


def _of_images(
    kernel: Any, inputs: tuple[str, str], shape: Any, vjp: tuple, samples: list
) -> Primitive:
    """Return an operation on two stacks; ``shape(x, y, **params)`` are the last four axes."""
    name = kernel.__name__

    def abstract(x: Aval, y: Aval, **params: Any) -> Aval:
        lead = broadcast_shapes(name, x.shape[:-4], y.shape[:-4])
        return Aval((*lead, *shape(x.shape, y.shape, **params)), promote(x.dtype, y.dtype))

    return operation(
        name,
        kernel,
        abstract,
        vjp,
        inputs,
        kind="contraction",
        kernel=kernel,
        core=(4, 4),
        dtypes=NUMBERS,
        samples=samples,
    )


def _to_images(y: Tensor, filters: Tensor, shape: tuple[int, ...], geometry: Geometry) -> Tensor:
    return _conv_input(y, filters, geometry=geometry, size=_size(shape))


def _to_filters(x: Tensor, y: Tensor, shape: tuple[int, ...], geometry: Geometry) -> Tensor:
    return _conv_filter(x, y, geometry=geometry, window=shape[-4:-2])


_conv = _of_images(
    kconv.conv,
    ("x", "filters"),
    lambda x, y, geometry: (x[-4], *geometry.output_size(_size(x), y[-4:-2]), y[-1]),
    (
        lambda dy, filters, shape, geometry: _to_images(dy, filters, shape, geometry),
        lambda dy, x, shape, geometry: _to_filters(x, dy, shape, geometry),
    ),
    [
        Case(((2, 3, 4, 2), (2, 3, 2, 1)), {"geometry": _UNIT}),
        Case(((1, 4, 4, 1), (2, 2, 1, 2)), {"geometry": _STEPS}),
        Case(((1, 3, 5, 4), (3, 2, 2, 4)), {"geometry": _GROUPS}),
        Case(((1, 4, 3, 2), (2, 2, 1, 4)), {"geometry": _ALONE}),
        Case(((2, 2, 2, 3), (1, 1, 3, 2)), {"geometry": _UNIT}),
    ],
)
_conv_input = _of_images(
    kconv.conv_input,
    ("x", "filters"),
    lambda x, y, geometry, size: (x[-4], *size, y[-2] * geometry.groups),
    (
        lambda dy, filters, geometry: _conv(dy, filters, geometry=geometry),
        lambda dy, x, shape, geometry: _to_filters(dy, x, shape, geometry),
    ),
    [
        Case(((2, 2, 2, 1), (2, 3, 2, 1)), {"geometry": _UNIT, "size": (3, 4)}),
        Case(((1, 2, 5, 2), (2, 2, 1, 2)), {"geometry": _STEPS, "size": (4, 4)}),
        Case(((1, 3, 2, 4), (3, 2, 2, 4)), {"geometry": _GROUPS, "size": (3, 5)}),
        Case(((1, 3, 3, 4), (2, 2, 1, 4)), {"geometry": _ALONE, "size": (4, 3)}),
    ],
)
_conv_filter = _of_images(
    kconv.conv_filter,
    ("x", "y"),
    lambda x, y, geometry, window: (*window, x[-1] // geometry.groups, y[-1]),
    (
        lambda dy, y, shape, geometry: _to_images(y, dy, shape, geometry),
        lambda dy, x, geometry: _conv(x, dy, geometry=geometry),
    ),
    [
        Case(((2, 3, 4, 2), (2, 2, 2, 1)), {"geometry": _UNIT, "window": (2, 3)}),
        Case(((1, 4, 4, 1), (1, 2, 5, 2)), {"geometry": _STEPS, "window": (2, 2)}),
        Case(((1, 3, 5, 4), (1, 3, 2, 4)), {"geometry": _GROUPS, "window": (3, 2)}),
        Case(((1, 4, 3, 2), (1, 3, 3, 4)), {"geometry": _ALONE, "window": (2, 2)}),
    ],
)


def conv(
    x: Any,
    filters: Any,
    strides: Any = 1,
    padding: Any = "VALID",
    data_format: Any = None,
    dilations: Any = 1,
) -> Tensor:
    """Return the convolution (without flipping) of images with filters, along one axis or two."""
    x, filters = convert_operands((x, filters))
    layout = ImageLayout("conv", data_format, filters._data.ndim - 2)
    x, filters = layout.images(x), layout.filters(filters)
    groups = _groups(x._data.shape[-1], filters._data.shape)
    size = _size(x._data.shape)
    geometry = _geometry(layout, filters, strides, padding, dilations, size, groups)
    return layout.back(_conv(x, filters, geometry=geometry))


def conv_transpose(
    x: Any,
    filters: Any,
    output_shape: Any,
    strides: Any = 1,
    padding: Any = "SAME",
    data_format: Any = None,
    dilations: Any = 1,
) -> Tensor:
    """Return the transpose of `conv` by its images, of `output_shape`: all axes, or those of
    space."""
    x, filters = convert_operands((x, filters))
    layout = ImageLayout("conv_transpose", data_format, filters._data.ndim - 2)
    x, filters = layout.images(x), layout.filters(filters)
    asked, size = layout.output_shape(output_shape)
    geometry = _geometry(layout, filters, strides, padding, dilations, size, 1)
    shape = x._data.shape
    expected = geometry.output_size(size, filters._data.shape[:2])
    if shape[-1] != filters._data.shape[-1] or _size(shape) != expected:
        raise InvalidArgumentError(
            f"conv_transpose: a convolution of images of {size} with filters of shape "
            f"{tuple(filters.shape)} gives {(*expected, filters._data.shape[-1])}, but x has "
            f"shape {tuple(shape[1:])}"
        )
    out = _conv_input(x, filters, geometry=geometry, size=size)
    return layout.check_output(asked, layout.back(out))


def depthwise_conv(
    x: Any,
    filters: Any,
    strides: Any = 1,
    padding: Any = "VALID",
    data_format: Any = None,
    dilations: Any = 1,
) -> Tensor:
    """Return `conv` of each channel with its own filters: (height, width, channels,
    multiplier)."""
    x, filters = convert_operands((x, filters))
    *window, channels, multiplier = filters._data.shape
    axis = 1 if ImageLayout("depthwise_conv", data_format, len(window)).first else -1
    if x._data.ndim != len(window) + 2 or x._data.shape[axis] != channels:
        raise InvalidArgumentError(
            f"depthwise_conv: filters of shape {tuple(filters.shape)} are for {channels} "
            f"channels, x has shape {tuple(x.shape)}"
        )
    filters = reshape(filters, (*window, 1, channels * multiplier))
    return conv(x, filters, strides, padding, data_format, dilations)


def _groups(channels: int, filters: tuple[int, ...]) -> int:
    own, outputs = filters[2], filters[3]
    groups = channels // own if own else 0
    if not groups or channels % own or outputs % groups:
        raise InvalidArgumentError(
            f"conv: the images have {channels} channels, but the filters take {own}"
            if not groups or channels % own
            else f"conv: images with {channels} channels and filters for {own} make {groups} "
            f"groups: the number of outputs must be a multiple of {groups}, got {outputs}"
        )
    return groups


def _geometry(
    layout: ImageLayout,
    filters: Tensor,
    strides: Any,
    padding: Any,
    dilations: Any,
    size: tuple[int, int],
    groups: int,
) -> Geometry:
    """Return the geometry for the kernels; InvalidArgumentError if no window fits."""
    window = filters._data.shape[:2]
    steps, spacing = layout.sizes("strides", strides), layout.sizes("dilations", dilations)
    reach = [gap * (count - 1) + 1 for gap, count in zip(spacing, window, strict=True)]
    if min(window) < 1:
        raise InvalidArgumentError(f"{layout.name}: filters must not be empty, got size {window}")
    geometry = Geometry(steps, layout.padding(padding, size, reach, steps), spacing, groups)
    try:
        geometry.output_size(size, window)
    except ValueError as error:
        raise InvalidArgumentError(f"{layout.name}: {error}") from None
    return geometry
