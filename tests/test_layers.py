"""The laws of the design: who may import whom, and what stands behind an operation."""

import ast
import importlib
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher

import tinygrad_cg
import tinygrad_cg_frontend
from tests.support.python import run_python
from tinygrad_cg import _ops as ops
from tinygrad_cg._core.primitive import OPS, Primitive
from tinygrad_cg_kernels.runtime.machine import MachineCode
from tinygrad_cg_kernels.runtime.signatures import PythonFunction

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "kernels"
FRONT_END = KERNELS / "tinygrad_cg_frontend"
LIBRARY = ROOT / "tinygrad_cg"
NAMESPACES = (
    *(
        "",
        "._ops.namespaces.arrays",
        ".math",
        ".linalg",
        ".nn",
        ".bitwise",
        ".random",
        ".dtypes",
        ".numpy",
        ".numpy.random",
        ".numpy.fft",
        ".signal",
    ),
    *(".keras.ops", ".keras.random"),
)
NOT_OPERATIONS = {  # rules, and questions whose answer is no tensor
    *("NotDifferentiable", "custom_derivatives", "custom_gradient", "debug_nans", "function"),
    "differentiable",
    *("hessian_coloring", "jacobian_coloring", "hessian_sparsity", "jacobian_sparsity"),
    *("declare_sparsity", "sparse_hessian", "sparse_jacobian", "show_sparsity"),
    *("grad_pass_through", "gradients"),
    *("numpy_function", "primitive", "py_function"),
    *("recompute_grad", "as_dtype", "executing_eagerly"),
    *("broadcast_shapes", "broadcast_static_shape", "control_dependencies", "ensure_shape"),
    *("group", "no_op"),
    *("device", "get_current_name_scope", "get_logger", "get_static_value", "inside_function"),
    *("is_symbolic_tensor", "no_gradient", "timestamp", "type_spec_from_value"),
    *("Assert", "assert_equal", "assert_greater", "assert_less"),
    *("get_global_generator", "set_global_generator"),
    *("assert_rank", "inverse_stft_window_fn", "required_space_to_batch_paddings"),
    *(
        "switch",
        "fori_loop",
        "foldl",
        "foldr",
        "map",
        "map_fn",
        "scan",
        "vectorize",
        "vectorized_map",
    ),
    "clear_cache",
    "convert_to_numpy",
    "get_num_threads",
    "set_num_threads",
    "dtype",
    "from_dlpack",
    "isdtype",
    "jvp",
    "cond",
    "print",
    "while_loop",
    "is_tensor",
    "ndim",
    "plot_derivatives",
    "shape",
    "show",
    "size",
}
PUBLIC_MODULES = {
    *(
        "autodiff",
        "autograd",
        "autograph",
        "bitwise",
        "compat",
        "config",
        "contrib",
        "data",
        "debugging",
        "distributed",
        "dtypes",
        "errors",
    ),
    *("experimental", "image", "keras", "linalg", "math", "module", "nest", "nn", "numpy"),
    *("optimizers", "random", "schedules", "signal", "test", "train", "warm"),
}
MAKERS = ("tinygrad_cg._ops.creation", "tinygrad_cg._ops.sampling")
EXTRAS = {  # imported where they are used
    LIBRARY / "_core" / "tracking.py": {"tqdm"},
    LIBRARY / "debugging" / "_pictures" / "curves.py": {"matplotlib"},
    LIBRARY / "debugging" / "_pictures" / "plotting.py": {"matplotlib"},
    LIBRARY / "_sparse" / "plots.py": {"matplotlib"},
    KERNELS / "tinygrad_cg_kernels" / "cuda" / "adapter.py": {"cupy", "cupyx", "cuda"},
}


def sources(folder: Path) -> list[Path]:
    """All Python files under a folder."""
    return sorted(folder.rglob("*.py"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return the imports, classes (without bodies) and calls of `import_module` in a file."""
    nodes: list[ast.AST] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            node.body, node.decorator_list = [], []
        called = getattr(node, "func", None)
        is_import = "import_module" in getattr(called, "attr", getattr(called, "id", ""))
        if is_import or isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef):
            nodes.append(node)
    return nodes


def imported(path: Path) -> set[str]:
    """The top-level names of the modules that a file imports, wherever in it."""
    names: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
    return names


def run(program: str) -> str:
    """What a program prints, in a fresh process that finds the library."""
    return run_python(f"import sys\n{program}").stdout


def loaded_by(module: str) -> set[str]:
    """The modules in memory after an import."""
    return set(run(f"import {module}\nprint(*sys.modules)").split())


def tops(modules: set[str]) -> set[str]:
    return {name.split(".")[0] for name in modules}


@pytest.mark.quick
def test_kernels_know_nothing_of_the_library():
    assert sources(KERNELS)
    for path in sources(KERNELS):
        assert "tinygrad_cg" not in imported(path), path


@pytest.mark.quick
def test_numba_has_one_home():
    assert sources(LIBRARY)
    for path in sources(LIBRARY):
        assert not imported(path) & {"numba", "llvmlite"}, path


@pytest.mark.quick
def test_numba_cuda_and_cupy_have_one_home():
    """Numba's own module for CUDA has a successor, a package that redirects it."""
    home = KERNELS / "tinygrad_cg_kernels" / "cuda" / "adapter.py"
    for path in sources(KERNELS) + sources(LIBRARY):
        names: set[str] = set()
        for node in nodes_of(path):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.update(f"{node.module}.{alias.name}" for alias in node.names)
        devices = {
            name for name in names if f"{name}.".startswith(("numba.cuda.", "cupy.", "cupyx."))
        }
        assert not devices or path == home, (path, devices)


@pytest.mark.quick
def test_the_front_end_imports_nothing_of_ours_and_no_compiler():
    for path in sources(FRONT_END):
        assert imported(path) <= sys.stdlib_module_names | {"numpy", FRONT_END.name}, path


@pytest.mark.quick
def test_only_the_interface_of_the_front_end_is_imported():
    """Names in its `__all__`, by its own name: no module of it."""
    declared = set(tinygrad_cg_frontend.__all__)
    assert all(hasattr(tinygrad_cg_frontend, name) for name in declared)
    used: set[str] = set()
    for path in {*sources(KERNELS), *sources(LIBRARY)} - {*sources(FRONT_END)}:
        for node in nodes_of(path):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    assert not alias.name.startswith(f"{FRONT_END.name}."), path
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                FRONT_END.name
            ):
                assert node.module == FRONT_END.name, path
                used |= {alias.name for alias in node.names}
    assert used == declared


def test_the_kernels_folder_is_no_package():
    assert not (KERNELS / "__init__.py").exists()


@pytest.mark.parametrize("folder", [LIBRARY, KERNELS])
def test_imports_are_of_the_standard_library_numba_and_numpy(folder):
    allowed = sys.stdlib_module_names | {"numpy", "numba", "llvmlite"}
    for path in sources(folder):
        ours = {"tinygrad_cg", "tinygrad_cg_frontend", "tinygrad_cg_kernels"}
        ours |= EXTRAS.get(path, set())
        assert imported(path) <= allowed | ours, path


FIRST_GRADIENT = """
import sys
import numpy as np
import tinygrad_cg as tf

@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)
    return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

for x in (tf.constant(1.0), tf.constant(np.linspace(-3.0, 3.0, 100_000))):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(log1pexp(x))
    tape.gradient(y, x)
print(tf.function(lambda x: tf.sin(x) * tf.exp(x))(tf.constant(2.0)).numpy())
assert "numba" not in sys.modules
"""


def test_numba_is_imported_when_it_first_compiles():
    """Not by the library, nor by what the front end translates."""
    modules = loaded_by("tinygrad_cg")
    assert "llvmlite" in modules
    assert "numba" not in modules
    assert run(FIRST_GRADIENT)


def test_the_library_loads_numba_numpy_and_nothing_else():
    ours = {"tinygrad_cg", "tinygrad_cg_frontend", "tinygrad_cg_kernels"}
    modules = tops(loaded_by("tinygrad_cg"))
    assert ours <= modules
    assert modules - tops(loaded_by("numba")) - ours <= sys.stdlib_module_names


def test_the_pytest_plugin_loads_no_library():
    modules = tops(loaded_by("pytest_tinygrad_cg"))
    assert not modules & {"tinygrad_cg", "tinygrad_cg_kernels", "numpy", "pytest_benchmark"}


def test_importing_the_library_leaves_the_tour_alone():
    assert not any(name.startswith("tinygrad_cg._tour") for name in loaded_by("tinygrad_cg"))


@pytest.mark.quick
def test_what_is_rarely_needed_is_loaded_when_it_is():
    program = """
import pickle
import sys
import numpy as np
import tinygrad_cg as tf

later = "numpy keras optimizers test autograph _function.fusion.fuse".split()
later += ["autograph._convert", "_function.tracing.function"]
later += ["_ops.namespaces.arrays", *(f"_ops.{name}" for name in tf._ops._LATER.split())]
print(any(f"tinygrad_cg.{name}" in sys.modules for name in later), set(tf.__all__) <= set(dir(tf)))
x = tf.constant([0.5, 2.5])
print(tf.map_fn(tf.sin, tf.zeros((0, 2))).shape, end=" ")
print(np.interp(x, [0.0, 1.0, 3.0], [0.0, 2.0, 6.0]).numpy(), np.heaviside(x, 0.5).numpy())
import tinygrad_cg._function.fusion.fuse
print(*map(float, (tf.function(tf.sin)(0.0), tf.keras.ops.sin(0.0), tf.numpy.sin(0.0))))
print(pickle.loads(pickle.dumps(tf.math.segment_sum)) is tf.math.segment_sum, end=" ")
print(x.at[0].set(9.0).numpy(), set(tf.math.__all__) <= set(dir(tf.math)), end=" ")
from tinygrad_cg.math import *
print(reduce_sum is tf.reduce_sum, exp is tf._ops.elementwise.exp)
try:
    tf.functoin
except AttributeError as error:
    print(error)
"""
    assert run(program).splitlines() == [
        "False True",
        "(0, 2) [1. 5.] [1. 1.]",
        "0.0 0.0 0.0",
        "True [9.  2.5] True True True",
        "module 'tinygrad_cg' has no attribute 'functoin': did you mean tf.function?",
    ]


@pytest.mark.quick
def test_operations_that_are_loaded_later_have_no_spellings():
    """What namespaces and NumPy's dispatch read of records is known at import."""
    at_once = {module.__name__.rpartition(".")[2] for module in ops.MODULES}
    modules = {path.stem for path in (LIBRARY / "_ops").glob("[a-z]*.py")}
    helpers = {"composition", "define", "settings", "validation"}
    assert {*ops._LATER.split()} == modules - at_once - helpers
    for record in OPS.values():
        kind, _, module = (record.abstract.__module__ or "").rpartition("._ops.")
        if kind and module in ops._LATER.split():
            assert (record.spellings, record.ufunc) == ((), None), record.name


def test_runtime_dependencies_are_numba_and_numpy():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [text.split(">=")[0] for text in project["dependencies"]] == ["numba", "numpy"]


# Which room may import which -------------------------------------------------------------------

GROUND = {"errors", "nest"}  # public modules that every room may import
MAY_IMPORT = {  # docs/architecture.md explains it
    "errors": set(),
    "nest": set(),
    "_core": GROUND,
    "_ops": {"_core", *GROUND},
    "_reverse": {"_core", "_ops", *GROUND},
    "_rules": {"_core", "_ops", "_reverse", *GROUND},
    "_transforms": {"_core", "_ops", "_reverse", "_rules", *GROUND},
    "autograph": {"_core", "_ops", "_reverse", "_rules", "_transforms", *GROUND},
    "_function": {"_core", "_ops", "_reverse", "_rules", "_transforms", "autograph", *GROUND},
    "_array_code": {"_core", "_ops", "_reverse", "_rules", "autograph", "_function", *GROUND},
    "_check": {"_core", "_ops", "_reverse", "_rules", "_transforms", *GROUND},
    "_sparse": {"_core", "_ops", "_reverse", "_rules", "_transforms", "_function", *GROUND},
    "debugging": {
        "_core",
        "_ops",
        "_reverse",
        "_rules",
        "_transforms",
        "_function",
        "module",
        "optimizers",
        *GROUND,
    },
}
KERNELS_MAY_IMPORT = {
    "runtime": set(),
    "elementary": {"runtime"},
    "loops": {"runtime", "elementary"},
    "reduce": {"runtime", "elementary", "loops"},
    "move": {"runtime", "elementary", "loops", "reduce"},
    "linear": {"runtime", "elementary", "loops", "reduce", "move"},
    "sparse": {"runtime", "elementary", "loops", "reduce", "move"},
    "cuda": {"runtime", "elementary", "loops", "reduce", "move", "linear"},
}
COMPILER_MAY_IMPORT = {
    "graph": set(),
    "fusion": {"graph"},
    "codegen": {"graph", "fusion"},
    "tracing": {"graph", "fusion", "codegen"},
}


def modules_of(folder: Path) -> dict[str, Path]:
    """The files of a package by the names of their modules."""
    files = {path: path.relative_to(folder.parent).with_suffix("") for path in sources(folder)}
    return {".".join(name.parts).removesuffix(".__init__"): path for path, name in files.items()}


def imports_of(folder: Path) -> dict[str, set[str]]:
    """The modules of a package that each of its modules imports, wherever in the file."""
    modules = modules_of(folder)
    arrows: dict[str, set[str]] = {}
    for module, path in modules.items():
        package = module if path.stem == "__init__" else module.rpartition(".")[0]
        targets: set[str] = set()
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom):
                home = node.module or ""
                if node.level:
                    parts = package.split(".")
                    above = parts[: len(parts) + 1 - node.level]
                    home = ".".join([*above, *filter(None, [node.module])])
                for alias in node.names:
                    name = f"{home}.{alias.name}"
                    targets.add(name if name in modules else home)
            elif isinstance(node, ast.Import):
                targets.update(alias.name for alias in node.names)
            elif isinstance(node, ast.Call):
                targets |= {str(arg.value) for arg in node.args if isinstance(arg, ast.Constant)}
        arrows[module] = targets & set(modules) - {module}
    return arrows


def room(module: str, package: str) -> str | None:
    """The first part of a module's name below `package`; None for what is not below it."""
    if not module.startswith(f"{package}."):
        return None
    return module.removeprefix(f"{package}.").split(".")[0]


@pytest.mark.parametrize(
    ("folder", "package", "allowed"),
    [
        (LIBRARY, "tinygrad_cg", MAY_IMPORT),
        (LIBRARY, "tinygrad_cg._function", COMPILER_MAY_IMPORT),
        (KERNELS / "tinygrad_cg_kernels", "tinygrad_cg_kernels", KERNELS_MAY_IMPORT),
    ],
    ids=["library", "compiler", "kernels"],
)
def test_rooms_import_only_what_they_may(folder, package, allowed):
    rooms = {path.stem for path in (folder.parent / package.replace(".", "/")).iterdir()}
    assert set(allowed) <= rooms
    for module, targets in imports_of(folder).items():
        source = room(module, package)
        for target in targets:
            goal = room(target, package)
            if source in allowed and goal is not None and goal != source:
                assert goal in allowed[source], f"{module} imports {target}"


def test_operations_know_nothing_of_namespaces():
    """Which name and parameters they have in other libraries."""
    for module, targets in imports_of(LIBRARY).items():
        if module.startswith("tinygrad_cg._ops.") and ".namespaces" not in module:
            assert not any("._ops.namespaces" in target for target in targets), module


@pytest.mark.parametrize("folder", [LIBRARY, FRONT_END, KERNELS / "tinygrad_cg_kernels"])
def test_no_modules_import_each_other_in_a_circle(folder):
    left = imports_of(folder)
    while left:  # take away what imports nothing that is left
        free = {module for module, targets in left.items() if not targets & set(left)}
        assert free, f"circles among {sorted(left)}"
        left = {module: targets for module, targets in left.items() if module not in free}


def repeated(names: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: places for name, places in names.items() if len(places) > 1}


def test_a_class_has_a_name_of_its_own():
    """But for a leading underscore."""
    homes: dict[str, list[str]] = {}
    for module, path in modules_of(LIBRARY).items():
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name.lstrip("_"), []).append(module)
    assert not repeated(homes)


def test_a_private_module_has_a_name_of_its_own():
    """Public modules are called as in other libraries, where names repeat."""
    homes: dict[str, list[str]] = {}
    for module, path in modules_of(LIBRARY).items():
        if not path.stem.startswith("__"):
            homes.setdefault(path.stem.lstrip("_"), []).append(module)
    for places in repeated(homes).values():
        assert not any("._" in module for module in places), places


def test_only_public_names_are_public_modules():
    public = {path.stem for path in LIBRARY.iterdir() if not path.name.startswith("_")}
    assert public - {"py"} <= PUBLIC_MODULES


def test_the_library_shows_its_public_names_only():
    assert dir(tinygrad_cg) == sorted(tinygrad_cg.__all__)


# What stands behind an operation --------------------------------------------------------------


def names_in(code: CodeType) -> Iterator[str]:
    """The global names that a piece of code uses, with the functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def foundations(value: Any, seen: set[int]) -> set[str]:
    """The records, and the modules that make tensors from nothing, that a function rests on."""
    if id(value) in seen:
        return set()
    seen.add(id(value))
    value = getattr(value, "primitive", value)
    if isinstance(value, Primitive):
        return {value.name}
    if not isinstance(value, FunctionType) or not value.__module__.startswith("tinygrad_cg"):
        return set()
    if value.__module__ in MAKERS:
        return {value.__module__}
    names = [*names_in(value.__code__)]
    used = [value.__globals__.get(name) for name in names]
    for module in used:  # and what is taken from modules
        if isinstance(module, ModuleType) and module.__name__.startswith("tinygrad_cg."):
            taken = [getattr(module, name, None) for name in names]
            used += [name for name in taken if name not in used]
    used += [cell.cell_contents for cell in value.__closure__ or ()]
    return set().union(*(foundations(name, seen) for name in used))


@pytest.mark.quick
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_public_operation_has_a_record(namespace):
    module = importlib.import_module(f"tinygrad_cg{namespace}")
    for name in module.__all__:
        operation = getattr(module, name)
        if isinstance(operation, FunctionType) and name not in NOT_OPERATIONS:
            bases = foundations(operation, set())
            assert bases, f"tinygrad_cg{namespace}.{name} rests on no record"
            assert bases <= set(OPS) | set(MAKERS), name


def test_the_registry_knows_its_records_by_name():
    assert len(OPS) >= 45
    assert all(record.name == name for name, record in OPS.items())
    assert {record.kind for record in OPS.values()} >= {"elementwise", "reduction", "move"}


def assert_compiled(kernel: Any) -> None:
    """That a kernel is compiled; `tests/kernels/test_translation.py` has Numba compile it too."""
    assert kernel.dispatchers
    for owner in kernel.dispatchers.values():
        assert isinstance(owner, Dispatcher | CFunc | MachineCode | PythonFunction)


def records(kind: str) -> list[Primitive]:
    return [record for record in OPS.values() if record.kind == kind]


@pytest.mark.parametrize("record", records("elementwise"), ids=lambda record: record.name)
def test_elementwise_records_are_compiled_kernels(record):
    kernel = record.kernel
    whole = not any(takes(np.dtype(float)) for takes in record.dtypes)
    kernel(*[np.full(3, 2 if whole else 0.5)] * kernel.inputs)
    assert_compiled(kernel)


@pytest.mark.parametrize("record", records("reduction"), ids=lambda record: record.name)
def test_reduction_records_are_compiled_kernels(record):
    case = record.samples[0]
    record.run(*[np.full(shape, 0.5) for shape in case.shapes], **case.params)
    assert_compiled(record.kernel)
