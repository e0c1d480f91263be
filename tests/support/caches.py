"""Cache folders of a test's own."""

import contextlib
import os
import shutil
from pathlib import Path

from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import generated


def link_kernels(folder: Path) -> None:
    """Put the library's own compiled kernels into another cache folder.

    Generated text is left out, so a test of how that is cached begins without any, but compiles
    nothing else. Files of the cache are replaced and never written again, so links are safe.
    """
    source = build.cache_folder()
    if source is None:
        return
    ours = [path for kind in ("functions", "kernels") for path in source.glob(f"{kind}/*.code")]
    for path in [*source.glob("*/*.nb[ic]"), *ours]:
        if path.name.startswith(generated.PREFIX):
            continue
        target = folder / source.name / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # another process replaces it
            try:
                os.link(path, target)
            except OSError:
                shutil.copy(path, target)
