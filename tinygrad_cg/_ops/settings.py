"""Settings of Keras: the default dtype, the small number, and the order of axes."""

from __future__ import annotations

import numpy as np


class Settings:
    """Values that hold for the whole process; `tinygrad_cg.keras.config` checks and sets them."""

    floatx = np.dtype("float32")
    epsilon = 1e-7
    image_data_format = "channels_last"


settings = Settings()
