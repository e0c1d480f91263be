"""TensorArray: tensors that a loop writes one after the other. Modelled on ``tf.TensorArray``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.conversion import INT32, as_dtype, convert
from .._core.levels import ask_for_value
from .._core.tensor import ArrayLike, Aval, Tensor, TensorShape
from .._ops.comparison import less
from .._ops.creation import zeros
from .._ops.elementwise import where
from .._ops.indexing import gather as take
from .._ops.indexing import set_row
from .._ops.shape import cast, concatenate, reshape, split, stack, unstack
from .._ops.validation import as_int
from ..errors import InvalidArgumentError, OutOfRangeError


class TensorArray:
    """A list of tensors of the same dtype, written and read by index.

    Parameters
    ----------
    dtype:
        The dtype of all elements; a tensor of another dtype raises InvalidArgumentError.
    size:
        The number of elements, 0 by default.
    dynamic_size:
        Whether `write` beyond the end makes the array longer instead of raising an error.
    clear_after_read:
        Whether an element can be read only once, which frees its memory; True by default.
    element_shape:
        The shape of each element, if it is known; None means any size.

    `write` and `unstack` return the array itself: ``array = array.write(i, x)``, as in TensorFlow.
    Elements stay on the tape, and `stack`, `concat`, `gather` and `read` are recorded. TensorFlow's
    remaining parameters have no effect.

    In a `function`, indices may be tensors without values. An array may be a variable of a loop if
    its size is known and its elements have the same shape. It is then a tensor of all elements:
    elements that were never written are zeros, an element may be read twice, and an out-of-range
    index raises OutOfRangeError or IndexError at the call. If an array grows in a loop over
    ``range(n)``, the value of the argument `n` becomes part of the signature.

    Examples
    --------
    >>> import tinygrad_cg as tf
    >>> squares = tf.TensorArray(tf.float32, size=3)
    >>> for i in range(3):
    ...     squares = squares.write(i, float(i * i))
    >>> squares.stack().numpy()
    array([0., 1., 4.], dtype=float32)
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ):
        self.dtype = as_dtype(dtype)
        self.dynamic_size = bool(dynamic_size)
        self._clear = clear_after_read is None or clear_after_read
        self._shape = None if element_shape is None else tuple(TensorShape(element_shape))
        self._infer = infer_shape
        self._elements: list[Tensor | None] = [None] * (
            0 if size is None else as_int("TensorArray", "size", size)
        )
        self._read: set[int] = set()
        self._rows: Tensor | None = None  # all elements, once an index had no value
        self._source: Tensor | None = None  # the tensor whose rows are the elements

    @property
    def element_shape(self) -> TensorShape | None:
        """Return the shape of each element; None if it is not known yet."""
        return None if self._shape is None else TensorShape(self._shape)

    def size(self, name: Any = None) -> Tensor:
        """Return the number of elements, as an int32 scalar."""
        return convert(len(self._elements))

    def write(self, index: Any, value: Any, name: Any = None) -> TensorArray:
        """Put `value` at `index`; returns this array. OutOfRangeError outside it."""
        if self._rows is not None or _has_no_value(index):
            return self._write_row(index, value)
        position = int(index)
        if position < 0 or (position >= len(self._elements) and not self.dynamic_size):
            raise OutOfRangeError(
                f"TensorArray: Tried to write to index {position} but array is not resizeable and "
                f"size is: {len(self._elements)}"
            )
        element = self._fit(value)
        while position >= len(self._elements):
            self._elements.append(None)
        self._elements[position] = element
        self._read.discard(position)
        self._source = None
        return self

    def _write_row(self, index: Any, value: Any) -> TensorArray:
        element = self._fit(value)
        rows = self.rows(element.shape)
        if not _has_no_value(index) and not 0 <= int(index) < len(self):
            raise OutOfRangeError(
                f"TensorArray: Tried to write to index {int(index)} but array is not resizeable in "
                f"a loop of a program, and size is: {len(self)}"
            )
        if not len(self):
            raise GrowingArrayError(
                "TensorArray: an array that grows cannot be written at an index without a value: "
                "pass its size, TensorArray(dtype, size=...)"
            )
        if element.shape != rows.shape[1:]:
            raise ValueError(
                f"TensorArray: Incompatible shape for value ({tuple(element.shape)}), expected "
                f"({tuple(rows.shape[1:])})"
            )
        self._set_rows(set_row(rows, element, cast(index, INT32)))
        return self

    def rows(self, shape: Sequence[int] | None = None) -> Tensor:
        """Return the elements as one tensor, with zeros where none has been written.

        `shape` is the shape of an element if it is not known otherwise.
        """
        if self._rows is not None:
            return self._rows
        if self._source is not None:
            return self._source
        return self.rows_of(self._elements, shape)

    def rows_of(self, elements: Sequence[Tensor | None], shape: Sequence[int] | None) -> Tensor:
        """Return one tensor of some elements."""
        shapes = [tuple(element.shape) for element in elements if element is not None]
        if self._shape is not None and None not in self._shape:
            shapes.append(self._shape)
        if shape is not None:
            shapes.append(tuple(shape))
        if not shapes:
            raise InvalidArgumentError(
                "TensorArray: the shape of its elements is not known: give element_shape="
            )
        if len(set(shapes)) > 1:
            raise InvalidArgumentError(
                f"TensorArray: elements of shapes {shapes[0]} and {shapes[-1]} cannot form one "
                "tensor, as a loop variable of a program must"
            )
        if all(element is None for element in elements):
            return zeros((len(elements), *shapes[0]), self.dtype)
        nothing = zeros(shapes[0], self.dtype)
        return stack([nothing if element is None else element for element in elements])

    def with_rows(self, rows: Tensor) -> TensorArray:
        """Return an array like this one, whose elements are the rows of a tensor."""
        other = self.identity()
        other._set_rows(rows)
        return other

    def _set_rows(self, rows: Tensor) -> None:
        self._rows, self._source = rows, None
        self._elements = [None] * rows.shape[0]
        if self._infer and self._shape is None:
            self._shape = tuple(rows.shape[1:])

    @property
    def state(self) -> Any:
        """Return the contents: a list of elements, or one tensor of all."""
        return list(self._elements) if self._rows is None else self._rows

    @state.setter
    def state(self, value: Any) -> None:
        if isinstance(value, Tensor):
            self._set_rows(value)
        elif self._rows is not None or list(map(id, value)) != list(map(id, self._elements)):
            self._elements, self._rows, self._source = list(value), None, None

    def read(self, index: Any, name: Any = None) -> Tensor:
        """Return the element at `index`, once if the array clears after reads."""
        if self._rows is not None or _has_no_value(index):
            rows, position = self.rows(), cast(index, INT32)
            if not _has_no_value(index):
                self._check_read(int(index))
            position = where(less(position, 0), len(self), position)  # not from the end
            return take(rows, position)
        position = int(index)
        self._check_read(position)
        element = self._element(position)
        if self._clear:
            self._elements[position] = None
            self._read.add(position)
        return element

    def _check_read(self, index: int) -> None:
        if not 0 <= index < len(self):
            raise OutOfRangeError(
                f"TensorArray: Tried to read from index {index} but array size is: {len(self)}"
            )

    def stack(self, name: Any = None) -> Tensor:
        """Return all elements as one tensor, along a new first axis."""
        if self._rows is not None:
            return self._rows
        if not self._elements and self._shape is not None:
            return zeros((0, *self._shape), self.dtype)
        return stack([self._element(i) for i in range(len(self._elements))])

    def gather(self, indices: Any, name: Any = None) -> Tensor:
        """Return the elements at `indices` as one tensor, along a new first axis."""
        return take(self.stack(), indices)

    def concat(self, name: Any = None) -> Tensor:
        """Return all elements joined along their first axis."""
        if self._rows is not None:
            return reshape(self._rows, (-1, *self._rows.shape[2:]))
        return concatenate([self._element(i) for i in range(len(self._elements))])

    def unstack(self, value: Any, name: Any = None) -> TensorArray:
        """Write the slices of `value` along the first axis; returns this array."""
        value = convert(value, self.dtype)
        self._replace(unstack(value, 0))
        self._source = value
        return self

    def scatter(self, indices: Any, value: Any, name: Any = None) -> TensorArray:
        """Write the slices of `value` along the first axis at `indices`; returns this array."""
        slices = unstack(convert(value, self.dtype), 0)
        if _has_no_value(indices):
            for k, row in enumerate(slices):
                self.write(take(indices, k), row)
            return self
        for index, row in zip(convert(indices).numpy().tolist(), slices, strict=True):
            self.write(index, row)
        return self

    def split(self, value: Any, lengths: Any, name: Any = None) -> TensorArray:
        """Write parts of `value`, of `lengths` along the first axis; returns this array."""
        sizes = convert(lengths).numpy().tolist()
        return self._replace(split(convert(value, self.dtype), sizes, 0), infer=False)

    def identity(self) -> TensorArray:
        """Return an array with the same elements."""
        other = TensorArray(self.dtype, 0, self.dynamic_size, self._clear, infer_shape=self._infer)
        other._shape, other._elements = self._shape, list(self._elements)
        other._read, other._rows, other._source = set(self._read), self._rows, self._source
        return other

    def close(self, name: Any = None) -> None:
        """Forget all elements."""
        self._elements, self._rows, self._source = [], None, None

    def __len__(self) -> int:
        return len(self._elements)

    def __repr__(self) -> str:
        return f"<tg.TensorArray: {len(self)} elements, dtype={self.dtype.name}>"

    def _replace(self, values: list[Tensor], infer: bool = True) -> TensorArray:
        if len(values) > len(self._elements) and not self.dynamic_size:
            raise InvalidArgumentError(
                f"TensorArray: {len(values)} elements for an array of size {len(self._elements)}"
            )
        self._elements = [self._fit(value, infer) for value in values]
        self._rows = self._source = None
        self._read = set()
        return self

    def _element(self, position: int) -> Tensor:
        element = self._elements[position]
        if element is not None:
            return element
        if position in self._read:
            raise InvalidArgumentError(
                f"TensorArray: Could not read index {position} twice because it was cleared after "
                "a previous read (perhaps try setting clear_after_read = false?)"
            )
        if self._shape is None or None in self._shape:
            raise InvalidArgumentError(
                f"TensorArray: Could not read from index {position} because it has not yet been "
                "written to, and the shape of its elements is not known"
            )
        return zeros(self._shape, self.dtype)

    def _fit(self, value: Any, infer: bool = True) -> Tensor:
        """Return `value` as an element, with the array's dtype and a shape that fits the others."""
        tensor = value if isinstance(value, Tensor) else convert(value, self.dtype)
        if tensor.dtype != self.dtype:
            raise InvalidArgumentError(
                f"TensorArray: Value dtype ({tensor.dtype.name}) does not match TensorArray dtype "
                f"({self.dtype.name}): use cast(value, {self.dtype.name})"
            )
        shape = tuple(tensor.shape)
        if self._shape is not None and (
            len(shape) != len(self._shape)
            or any(b is not None and a != b for a, b in zip(shape, self._shape, strict=True))
        ):
            raise ValueError(
                f"TensorArray: Incompatible shape for value ({shape}), expected ({self._shape})"
            )
        if self._infer and infer and self._shape is None:
            self._shape = shape
        return tensor


class GrowingArrayError(InvalidArgumentError):
    """An array without a size was written at an index that has no value."""


def _has_no_value(index: Any) -> bool:
    """Return whether an index has no value in a trace, or a different one for each example."""
    if not isinstance(index, ArrayLike):
        return False
    tensor = convert(index)
    return isinstance(tensor._data, Aval) and ask_for_value(tensor) is None
