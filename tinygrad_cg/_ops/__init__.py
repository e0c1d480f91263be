"""Operations. Everything about one of them stands in its record, in the module of its kind.

The modules of `_LATER` are loaded when one of their names is first asked for, the others with the
library. A function that calls ``_ops.pooling.max_pool`` loads a module of `_LATER`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # at run time `__getattr__` loads them
    from . import (  # noqa: F401
        activations,
        attention,
        bessel,
        blocks,
        candidates,
        casts,
        complex_parts,
        convolution,
        counting,
        decompositions,
        diagonals,
        distribution_functions,
        distributions,
        dlpack,
        eigenvectors,
        einsum,
        factorizations,
        filters,
        fourier,
        hurwitz,
        incomplete,
        integrals,
        least_squares,
        losses,
        matrices,
        matrix_functions,
        normalizations,
        norms,
        padding,
        pooling,
        sampling,
        searching,
        segments,
        sequences,
        spectra,
        spectral,
        statistics,
        systems,
        tapers,
        updates,
        volumes,
        windows,
    )

_MODULES = (
    "comparison complex creation elementwise indexing integers linear_algebra operators protocol "
    "reductions scans shape sorting special_functions transfer trigonometry"
)
# The others, by name, with the functions and classes that they define for other modules.
_LATER = {
    "activations": (
        "celu crelu elu gelu glu hard_shrink hard_sigmoid hard_silu hard_tanh keep_above "
        "leaky_relu mish relu6 selu silu soft_shrink sparse_plus sparse_sigmoid sparsemax "
        "squareplus tanh_shrink"
    ),
    "attention": "dot_product_attention",
    "blocks": (
        "batch_to_space depth_to_space fold frames rearrange reverse_sequence space_to_batch "
        "space_to_depth unfold"
    ),
    "bessel": (
        "bessel_iv bessel_ive bessel_j bessel_j0 bessel_j1 bessel_k bessel_k0 bessel_k0e bessel_k1 "
        "bessel_k1e bessel_ke bessel_y bessel_y0 bessel_y1"
    ),
    "candidates": (
        "Candidates accidental_hits all_candidates bounded_normal nce_loss sample_candidates "
        "sampled_softmax_loss"
    ),
    "casts": "bitcast saturate_cast",
    "complex_parts": "complex_of complex_of_pairs",
    "convolution": "conv conv_transpose depthwise_conv",
    "counting": "bincount confusion_matrix histogram histogram_bins invert_permutation polynomial",
    "decompositions": (
        "LogMatrixDeterminant cholesky cholesky_solve cholesky_upper det hermitian inv slogdet "
        "solve triangular_solve"
    ),
    "diagonals": (
        "band_part matrix_diag matrix_diag_part matrix_set_diag tensor_diag tensor_diag_part"
    ),
    "distribution_functions": "beta betaln gamma lbeta logit ndtr ndtri rgamma",
    "distributions": (
        "beta_draws binomial_draws categorical fold_in gamma_draws gamma_of_shape poisson_draws "
        "poisson_of_shape shuffle split_seed stateless_seed truncated_normal"
    ),
    "dlpack": "from_dlpack to_dlpack",
    "eigenvectors": "eig eigvals lu lu_factors",
    "einsum": "einsum from_lists",
    "factorizations": "complete_basis eigh eigvalsh over_gaps qr svd svdvals",
    "filters": (
        "depthwise_conv_adjoint depthwise_conv_filter_adjoint dilation2d erosion2d "
        "local_response_normalization max_pool_with_argmax separable_conv"
    ),
    "fourier": "fft fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftn",
    "hurwitz": "zeta",
    "incomplete": "betainc by_orders check_order gamma_transport igamma igammac",
    "integrals": (
        "cos_square dawsn dawson_derivative expint fresnel_cos fresnel_sin sin_square spence "
        "spence_derivative"
    ),
    "least_squares": "lstsq matrix_rank pinv relative_tolerance",
    "losses": (
        "binary_crossentropy categorical_crossentropy categorical_hinge cosine_similarity hinge "
        "huber kl_divergence log_cosh log_poisson_loss mean_absolute_error "
        "mean_absolute_percentage_error mean_squared_error mean_squared_logarithmic_error poisson "
        "same_rank sigmoid_cross_entropy softmax_cross_entropy sparse_categorical_crossentropy "
        "sparse_cross_entropy squared_hinge weighted_cross_entropy"
    ),
    "matrices": (
        "adjoint band by_lapack columns complex_dtype copied_aval copy_of largest matrices "
        "of_matrices product real_dtype result_dtype rows solve_systems square_matrices tolerance"
    ),
    "matrix_functions": "expm logm sqrtm",
    "normalizations": (
        "batch_normalization clip_by_global_norm clip_by_norm dropout embedding_lookup "
        "global_norm l2_normalize layer_normalization mean_and_variance normalize "
        "rms_normalization weighted_moments"
    ),
    "norms": "matrix_norm norm normalized reduce_euclidean_norm vector_norm",
    "padding": "pad",
    "pooling": "adaptive_pool average_pool max_pool",
    "sampling": "draw normal set_seed uniform",
    "searching": "coordinates is_on_gpu searchsorted tensor_of true_rows unique values_of",
    "segments": "segment_extremum segment_product sorted_segments unsorted_segments",
    "sequences": "ctc_loss",
    "spectral": "for_vectors gradient_by_values",
    "spectra": (
        "centred_inverse_stft centred_stft complex_of_rank cosines framed inverse_mdct "
        "inverse_stft inverse_window kaiser_bessel_derived_window mdct mel_weights mfccs of_rank "
        "overlap_and_add stft vorbis_window"
    ),
    "statistics": (
        "ApproxTopK average_loss collapse_repeated globally_normalized isotonic_regression "
        "normalize_moments sufficient_statistics top_k_along unique_labels"
    ),
    "systems": (
        "banded_triangular_solve eigh_tridiagonal lu_matrix_inverse lu_reconstruct lu_solve "
        "tridiagonal_matmul tridiagonal_solve"
    ),
    "tapers": "bartlett blackman hamming hanning kaiser kaiser_window raised_cosine",
    "updates": (
        "At Part boolean_mask dynamic_partition dynamic_stitch gather_nd is_listed scatter_nd "
        "tensor_scatter"
    ),
    "volumes": (
        "conv3d conv3d_transpose convolve convolve_transpose extract_volume_patches pool pool3d "
        "pool_by_rank with_space_to_batch"
    ),
    "windows": "ImageLayout",
}
HOMES = {name: module for module, names in _LATER.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Return a module of `_LATER`, which is loaded now."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f".{name}", __name__)


def find(name: str) -> Any:
    """Return the function of a name in `HOMES`, whose module is loaded if it is not."""
    return getattr(import_module(f".{HOMES[name]}", __name__), name)


def load_all() -> None:
    """Load all modules, so that the registry has every operation."""
    for module in _LATER:
        import_module(f".{module}", __name__)


MODULES = [import_module(f".{name}", __name__) for name in _MODULES.split()]
