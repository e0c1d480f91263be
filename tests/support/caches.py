"""Cache folders of a test's own."""

import contextlib
import os
import shutil
from pathlib import Path

from tinygrad_cg_kernels.runtime.store import cache_folder


def link_kernels(folder: Path) -> None:
    """Put the library's own compiled kernels into another cache folder.

    Programs are left out, so a test of how they are cached begins without any, but compiles nothing
    else. Files of the cache are replaced and never written again, so links are safe.
    """
    source = cache_folder()
    if source is None:
        return
    for path in [
        path for kind in ("functions", "kernels") for path in source.glob(f"{kind}/*.code")
    ]:
        target = folder / source.name / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # another process replaces it
            try:
                os.link(path, target)
            except OSError:
                shutil.copy(path, target)
