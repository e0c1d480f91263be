"""The error for identifiers that Keras's ``get`` functions do not find."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn


def refuse_identifier(where: str, expected: str, names: Iterable[str], identifier: Any) -> NoReturn:
    """Raise ValueError for an identifier that is neither `expected` nor one of these names."""
    raise ValueError(
        f"{where}: identifier must be {expected} or one of {', '.join(names)}; got {identifier!r}"
    )
