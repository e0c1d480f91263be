"""The kernels that the other cases launch, compiled and linked: a program that needs no GPU.

It needs the package numba-cuda with NVIDIA's compiler library and linker. Arrays are those of the
stand-in for CuPy. Instead of being launched, a kernel is compiled for the types of its arguments.
The program prints how many it compiled, what was refused, the registers of a thread that the
largest kernel uses, and the kernels whose registers are spilled to memory.

    python -m tests.cuda.ptx_cases elementwise 90

With a third word, indices have 64 bits, as for arrays of 2^31 elements and more.
"""

import json
import re
import sys
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from cuda import core  # pyright: ignore[reportMissingImports]

from tests.support.simulator import PATHS
from tinygrad_cg_kernels.cuda import adapter, launches, layouts
from tinygrad_cg_kernels.move import gather

sys.path.insert(0, PATHS[-1])
import cupy as simulated  # pyright: ignore[reportMissingImports]

CAPABILITY = divmod(int((sys.argv[2:] or [80])[0]), 10)
layouts.NARROW *= len(sys.argv) < 4


class Compiler:
    """Takes the place of `adapter.Driver`: compiles kernels, and launches nothing."""

    def __init__(self) -> None:
        self.compiled: dict[Any, Any] = {}
        self.refused: list[str] = []
        self.launched = self.shuffled = self.registers = 0
        self.spilled: list[str] = []
        self.name, self.log = "", ""
        self.driver = adapter.Driver(core)

    def load(self, kernel: Any, kinds: Any) -> None:
        self.compiled[kernel, kinds] = True
        try:
            _, text = adapter.compile_ptx(kernel.py_func, kinds, CAPABILITY)
            _, told = self.driver.link(text, CAPABILITY)
        except Exception as error:
            self.refused.append(f"{self.name}: {error} {self.log}")
            return
        self.registers = max(self.registers, *map(int, re.findall(r"Used (\d+) registers", told)))
        if re.search(r"[1-9]\d* bytes spill", told):
            self.spilled.append(self.name)
        self.shuffled += "shfl.sync.down" in text
        head = text.partition(".entry")[2].partition(")")[0]
        taken = re.findall(r"^\s*\.param\s+\.(\w+)", head, re.MULTILINE)
        if text.count(".visible .entry") != 1 or ".extern .func" in text:
            self.refused.append(f"{self.name}: is not one kernel that calls nothing outside")
        examples = [
            launches.Place(k, 1) if isinstance(k, np.dtype) else (1,) * (k or 1) for k in kinds
        ]
        if taken != ["u64"] * launches.Prepared(kernel, 1, examples).words.size:
            self.refused.append(f"{self.name}: takes {taken}")

    def launch(self, *arguments: Any) -> None:
        self.launched += 1


def without_a_driver(compiler: Compiler) -> None:
    """Have numba-cuda compile for a device that is not there, and keep what the compiler says."""
    from numba.cuda import dispatcher
    from numba.cuda.cudadrv import nvvm

    class Device:
        compute_capability = CAPABILITY

    dispatcher.get_current_device = lambda: Device
    check = nvvm.CompilationUnit.verify

    def verify(unit: Any) -> None:
        try:
            check(unit)
        except Exception:
            compiler.log = unit.get_log()
            raise

    nvvm.CompilationUnit.verify = verify
    adapter.array_module = lambda: simulated
    adapter.device_count = lambda: 1
    adapter.driver = lambda: compiler


def cases(which: str) -> Iterator[tuple[Any, list[Any]]]:
    if which == "elementwise":
        from tests.cuda import elementwise_cases

        own = [*elementwise_cases.users(), *elementwise_cases.transposed(8)]
        for _, kernel, operands in [*elementwise_cases.cases(), *own]:
            yield kernel, operands
    elif which == "reductions":
        from tests.cuda import reduction_cases

        for _, kernel, arguments in reduction_cases.cases():
            yield kernel, arguments
    elif which == "moves":
        from tests.cuda import move_cases

        yield from [*move_cases.scans(), *move_cases.moves()]
        many = np.zeros(2000, int)  # in several chunks
        for size in (3, 2**16):  # indices are compared with results, and sorted
            for dtype in (np.dtype(float), np.dtype(bool)):
                yield gather.scatter_add, [(size,), dtype, many, (many + 0.5).astype(dtype)]


def rounds(x: Any) -> Any:
    import tinygrad_cg as tf

    for _ in range(12):
        x = x - 0.1 * tf.sin(x * x)
    return tf.reduce_sum(x)


def steps(x: Any) -> Any:
    import tinygrad_cg as tf

    for _ in tf.range(3):
        x = tf.tanh(x) * 1.5
    return x


def compile_programs(compiler: Compiler) -> None:
    """Compile the kernels of programs of `function`; what they compute is never there."""
    import tinygrad_cg as tf
    from tests.cuda.on_device.test_programs import LINE, PROGRAMS

    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = rounds(x)
        return tape.gradient(y, x)

    for program, *arrays in [*PROGRAMS, (rounds, LINE), (steps, LINE), (gradient, LINE)]:
        compiler.name = program.__name__
        before = len(compiler.compiled)
        try:
            tf.function(program)(*[tf.constant(array).gpu() for array in arrays])
        except (ValueError, IndexError):  # indices that no kernel computed
            continue
        if len(compiler.compiled) == before and all(array.size for array in arrays):
            compiler.refused.append(f"{program.__name__}: no kernel was compiled")


def compile_kernels(compiler: Compiler, which: str) -> None:
    from tinygrad_cg_kernels.cuda import kernels

    for kernel, arguments in cases(which):
        compiler.name = repr(kernel)
        run = kernels.device_run(kernel)
        assert run is not None
        make = simulated.asarray
        try:
            run(*[make(a) if isinstance(a, np.ndarray) else a for a in arguments])
        except (ValueError, IndexError):
            continue  # an axis without elements, or one whose numbers nobody computed


def compile_draws(compiler: Compiler) -> None:
    """Compile the kernels of random numbers, and of searches in sorted rows."""
    from tinygrad_cg_kernels.cuda import draws, searching

    generator = np.random.Philox(1)
    for dtype in (np.dtype("d"), np.dtype("f")):
        compiler.name = f"random numbers of {dtype}"
        draws.numbers(generator, 5, dtype)
    for high in (2**20, 2**40):
        compiler.name = f"random integers below {high}"
        draws.integers(generator, 5, 0, high, np.dtype("q"))
    for code in "dfqQ?":
        compiler.name = f"search in rows of {code}"
        rows = simulated.asarray(np.zeros((2, 3), code))
        searching.search(rows, rows, False)


class Core:
    """The package cuda.core, with a device and without a driver."""

    Linker, LinkerOptions = core.Linker, core.LinkerOptions
    compute_capability, handle = CAPABILITY, 0

    class ObjectCode:
        from_ptx = staticmethod(core.ObjectCode.from_ptx)
        from_cubin = staticmethod(lambda code: Core())

    def Device(self, number: int) -> Any:
        return self

    def set_current(self) -> None:
        pass

    def get_kernel(self, name: str) -> Any:
        return self


def load_kernels(compiler: Compiler) -> None:
    """Load kernels as a driver does, from the disk where they are there."""
    import tinygrad_cg as tf

    launch = SimpleNamespace(launchKernel=lambda *arguments: compiler.launch())
    simulated.cuda.driver = launch
    driver = adapter.Driver(Core())
    compile_ptx = adapter.compile_ptx

    def counted(*arguments: Any) -> Any:
        compiler.compiled[len(compiler.compiled)] = True
        return compile_ptx(*arguments)

    adapter.compile_ptx, adapter.driver = counted, lambda: driver
    x, i = tf.ones((40, 50)).gpu(), tf.constant([0, 1]).gpu()
    for operation in (tf.sin, tf.nn.softmax, tf.reduce_sum, tf.cumsum, tf.argmax):
        operation(x)
    tf.reduce_sum(x, 0)
    tf.sin(tf.transpose(x))
    tf.grad(lambda y: tf.reduce_sum(tf.gather(y, i)))(x)
    tf.function(lambda x: tf.reduce_sum(tf.tanh(x) * x[0]))(x)


def compile_groups(compiler: Compiler) -> None:
    """Compile the kernels that combine what groups of threads have."""
    from tests.cuda import group_cases

    for code in group_cases.DTYPES:
        compiler.name = f"groups of {code}"
        group_cases.combined(np.zeros(adapter.THREADS, code), 64)


def main() -> None:
    warnings.simplefilter("ignore")
    compiler = Compiler()
    without_a_driver(compiler)
    if sys.argv[1] == "programs":
        compile_programs(compiler)
    elif sys.argv[1] == "draws":
        compile_draws(compiler)
    elif sys.argv[1] == "disk":
        load_kernels(compiler)
    elif sys.argv[1] == "groups":
        compile_groups(compiler)
    else:
        compile_kernels(compiler, sys.argv[1])
    names = "launched", "shuffled", "registers", "spilled", "refused"
    counts = {name: getattr(compiler, name) for name in names}
    print(json.dumps({"compiled": len(compiler.compiled), **counts}))


if __name__ == "__main__":
    main()
