"""Generated text as kernels of the device.

A text is a module: it imports the scalar functions that it calls, and has functions of device code
(`device` stands before them) and kernels. What has the same text is compiled once.
"""

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from types import ModuleType
from typing import Any

from tinygrad_cg_kernels.cuda import adapter, launches
from tinygrad_cg_kernels.runtime import generated
from tinygrad_cg_kernels.runtime.texts import compiled, title_of

MAX_LOADED = 256
"""Kernels are kept for at most this many source texts."""

SILENT = """
def silent_{name}(*arguments):
    with np.errstate(all="ignore"):
        {name}(*arguments)
"""
"""In the simulator, kernels run as Python, where NumPy's scalars warn of infinities."""

_lock = Lock()
_loaded: OrderedDict[str, dict[str, Any]] = OrderedDict()


class _Functions:
    """A module of scalar functions, as device code calls them in the simulator."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        function = adapter.scalar_function(getattr(self._module, name))
        setattr(self, name, function)
        return function


def kernels(source: str, names: Sequence[str]) -> list[launches.DeviceKernel]:
    """Return the kernels of a text, of these names."""
    with _lock:
        loaded = _loaded.get(source)
        if loaded is None:
            loaded = _loaded[source] = _load(source, names)
            if len(_loaded) > MAX_LOADED:
                _loaded.popitem(last=False)
        _loaded.move_to_end(source)
    return [loaded[name] for name in names]


def _load(source: str, names: Sequence[str]) -> dict[str, Any]:
    if not adapter.simulated():
        scope = generated.load(source).__dict__
        return {name: launches.DeviceKernel(adapter.device_kernel(scope[name])) for name in names}
    scope: dict[str, Any] = {"__name__": "<tinygrad_cg device program>"}
    text = source + "\n".join([SILENT.format(name=name) for name in names])
    exec(compiled(text, title_of("device program")), scope)
    for name, value in list(scope.items()):
        own = isinstance(value, ModuleType) and value is not adapter.cuda
        if own and value.__name__.startswith("tinygrad_cg_kernels."):
            scope[name] = _Functions(value)
    kernels = {name: adapter.device_kernel(scope[f"silent_{name}"]) for name in names}
    return {name: launches.DeviceKernel(kernel) for name, kernel in kernels.items()}


def prepare(
    kernel: launches.DeviceKernel, blocks: int, arrays: Sequence[Any], numbers: Sequence[Any] = ()
) -> launches.Prepared:
    """Return the launch of a kernel of arrays in C order, such as these, and numbers, or tuples."""
    places = [launches.Place(array.dtype, 0, array.size) for array in arrays]
    return launches.Prepared(kernel, blocks, [*places, *numbers])


def clear() -> None:
    """Forget all kernels; those in use stay."""
    with _lock:
        _loaded.clear()
