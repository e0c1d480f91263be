"""Modules of LLVM: optimised, loaded, and freed with their owners."""

from __future__ import annotations

from functools import cache
from typing import Any

import llvmlite.binding as llvm


def _new_target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, codemodel="jitdefault", jit=True
    )


_target = cache(_new_target)


@cache
def vector_bits() -> int:
    """Return the width of the processor's vectors."""
    features = llvm.get_host_cpu_features()
    return 512 if features.get("avx512f") else 256 if features.get("avx2") else 128


@cache
def wide() -> str:
    """Return the attributes of functions of whole vectors."""
    bits = vector_bits()
    return f'nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'


@cache
def fuses() -> bool:
    """Return whether the processor multiplies and adds in one instruction."""
    return bool(llvm.get_host_cpu_features().get("fma")) or "aarch64" in llvm.get_process_triple()


def optimised(module: Any, vectors: bool = True) -> Any:
    """Return the module, optimised in place; without `vectors` it stays scalar."""
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_unrolling = True
    options.loop_vectorization = options.slp_vectorization = vectors
    builder = llvm.create_pass_builder(_target(), options)
    builder.getModulePassManager().run(module, builder)
    return module


def object_code(module: Any) -> bytes:
    return _target().emit_object(module)


class Code:
    """Loaded machine code; its memory is freed with the object."""

    def __init__(self, data: bytes):
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _new_target())
        self._engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(data))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Return the address of a function."""
        found = self._engine.get_function_address(name)
        if not found:
            raise RuntimeError(f"machine code has no function {name!r}")
        return found

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is not None:
            engine.close()
