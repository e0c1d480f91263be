"""Whole programs for TensorFlow, which run with either import: `python -m benchmarks.programs`.

Each program is written once, with `import tinygrad_cg as tf`: a guide of `examples/`, or a file
here. `STEPS` has what one more step of its training is, as an expression in the program's names.
"""

from pathlib import Path

_HERE = Path(__file__).parent
_GUIDES = _HERE.parents[1] / "examples" / "guides"

STEPS = {
    "flows": "train_step(batch)",
    "lstm": "train_step(tf.constant(sequences), tf.constant(lengths, dtype=tf.int32))",
    "maml": "meta_step(*sample_tasks())",
    "pinn_kdv": "train_step()",
    "vq_vae": "train_step(images)",
    "wgan_gp": "train_critic(real, normal(BATCH, LATENT), alpha)",
    "eigenvalues": "train()",
    "gaussian_process": "train()",
    "hmc": "step()",
    "learned_optimizer": "train()",
    "neural_ode": "train()",
    "newton_cg": "newton()",
    "sobolev": "train()",
    "soft_dtw": "train()",
    "svd": "train()",
    "transformer": "train()",
}
"""Add a program here."""


def path(name: str) -> Path:
    """Return the file of a program."""
    here = _HERE / f"{name}.py"
    return here if here.exists() else _GUIDES / f"{name}.py"
