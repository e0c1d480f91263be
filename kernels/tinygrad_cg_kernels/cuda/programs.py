"""Generated text as kernels of the device.

A text is a module: it imports the scalar functions that it calls, and has functions of device code
(`device` stands before them) and a kernel. What has the same text is compiled once.
"""

from functools import lru_cache
from types import ModuleType
from typing import Any

from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.runtime import generated
from tinygrad_cg_kernels.runtime.texts import compiled, title_of


class _Functions:
    """A module of scalar functions, as device code calls them in the simulator."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        function = adapter.scalar_function(getattr(self._module, name))
        setattr(self, name, function)
        return function


@lru_cache(maxsize=256)
def kernel_of(source: str) -> Any:
    """Return the function `kernel` of a text."""
    if not adapter.simulated():
        return adapter.device_kernel(generated.load(source).__dict__["kernel"])
    scope: dict[str, Any] = {"__name__": "<tinygrad_cg device program>"}
    exec(compiled(source, title_of("device program")), scope)
    for name, value in list(scope.items()):
        own = isinstance(value, ModuleType) and value is not adapter.cuda
        if own and value.__name__.startswith("tinygrad_cg_kernels."):
            scope[name] = _Functions(value)
    return adapter.device_kernel(scope["kernel"])
