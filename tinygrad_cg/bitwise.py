"""TensorFlow's ``tf.bitwise``: bits of integers and bools."""

from __future__ import annotations

from ._spellings.spell import spell

spell(globals(), "", records="bitwise")
