"""Functions of the namespaces that this library follows, for `coverage` to compare with.

They are those of TensorFlow 2.21, Keras 3.15 and the array API standard 2024.12, and the functions
that autograd 1.8 differentiates, but for its own helpers.
"""

NAMES = {
    "tf": (
        "Assert abs acos acosh add add_n approx_top_k argmax argmin argsort as_dtype "
        "as_string asin asinh assert_equal assert_greater assert_less assert_rank atan atan2 "
        "atanh batch_to_space bitcast boolean_mask broadcast_dynamic_shape "
        "broadcast_static_shape broadcast_to case cast check_pinned clip_by_global_norm "
        "clip_by_norm clip_by_value complex concat cond constant control_dependencies conv "
        "conv2d_backprop_filter_v2 conv2d_backprop_input_v2 convert_to_tensor cos cosh cumsum "
        "custom_gradient device divide dynamic_partition dynamic_stitch edit_distance eig "
        "eigvals einsum ensure_shape equal executing_eagerly exp expand_dims "
        "extract_volume_patches eye fftnd fill fingerprint floor foldl foldr function gather "
        "gather_nd get_current_name_scope get_logger get_static_value grad_pass_through "
        "gradients greater greater_equal group guarantee_const hessians histogram_fixed_width "
        "histogram_fixed_width_bins identity identity_n ifftnd import_graph_def init_scope "
        "inside_function irfftnd is_symbolic_tensor is_tensor less less_equal linspace "
        "load_library load_op_library logical_and logical_not logical_or make_ndarray "
        "make_tensor_proto map_fn matmul matrix_square_root maximum meshgrid minimum multiply "
        "negative no_gradient no_op nondifferentiable_batch_function norm not_equal "
        "numpy_function one_hot ones ones_like pad parallel_stack pow print py_function "
        "ragged_fill_empty_rows ragged_fill_empty_rows_grad random_index_shuffle range rank "
        "realdiv recompute_grad reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean "
        "reduce_min reduce_prod reduce_sum register_tensor_conversion_function repeat "
        "required_space_to_batch_paddings reshape reverse reverse_sequence rfftnd roll round "
        "saturate_cast scalar_mul scan scatter_nd searchsorted sequence_mask shape shape_n "
        "sigmoid sign sin sinh size slice sort space_to_batch space_to_batch_nd split sqrt "
        "square squeeze stack stop_gradient strided_slice subtract switch_case tan tanh "
        "tensor_scatter_nd_add tensor_scatter_nd_max tensor_scatter_nd_min "
        "tensor_scatter_nd_sub tensor_scatter_nd_update tensordot tile timestamp transpose "
        "truediv truncatediv truncatemod tuple type_spec_from_value unique unique_with_counts "
        "unravel_index unstack variable_creator_scope vectorized_map where while_loop zeros "
        "zeros_like"
    ),
    "tf.math": (
        "abs accumulate_n acos acosh add add_n angle approx_max_k approx_min_k argmax argmin "
        "asin asinh atan atan2 atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e betainc "
        "bincount ceil confusion_matrix conj cos cosh count_nonzero cumprod cumsum "
        "cumulative_logsumexp digamma divide divide_no_nan equal erf erfc erfcinv erfinv exp "
        "expm1 floor floordiv floormod greater greater_equal igamma igammac imag in_top_k "
        "invert_permutation is_finite is_inf is_nan is_non_decreasing is_strictly_increasing "
        "l2_normalize lbeta less less_equal lgamma log log1p log_sigmoid log_softmax "
        "logical_and logical_not logical_or logical_xor maximum minimum mod multiply "
        "multiply_no_nan ndtri negative nextafter not_equal polygamma polyval pow real "
        "reciprocal reciprocal_no_nan reduce_all reduce_any reduce_euclidean_norm "
        "reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_std reduce_sum "
        "reduce_variance rint round rsqrt scalar_mul segment_max segment_mean segment_min "
        "segment_prod segment_sum sigmoid sign sin sinh sobol_sample softmax softplus "
        "softsign sqrt square squared_difference subtract tan tanh top_k truediv "
        "unsorted_segment_max unsorted_segment_mean unsorted_segment_min "
        "unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum xdivy xlog1py "
        "xlogy zero_fraction zeta"
    ),
    "tf.math.special": (
        "bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_k0 bessel_k0e "
        "bessel_k1 bessel_k1e bessel_y0 bessel_y1 dawsn expint fresnel_cos fresnel_sin spence"
    ),
    "tf.linalg": (
        "adjoint band_part banded_triangular_solve cholesky cholesky_solve cross det diag "
        "diag_part eig eigh eigh_tridiagonal eigvals eigvalsh einsum expm eye global_norm inv "
        "l2_normalize logdet logm lstsq lu lu_matrix_inverse lu_reconstruct lu_solve matmul "
        "matrix_rank matrix_transpose matvec norm normalize pinv qr set_diag slogdet solve "
        "sqrtm svd tensor_diag tensor_diag_part tensordot trace triangular_solve "
        "tridiagonal_matmul tridiagonal_solve"
    ),
    "tf.nn": (
        "all_candidate_sampler approx_max_k approx_min_k atrous_conv2d "
        "atrous_conv2d_transpose avg_pool avg_pool1d avg_pool2d avg_pool3d "
        "batch_norm_with_global_normalization batch_normalization bias_add collapse_repeated "
        "compute_accidental_hits compute_average_loss conv1d conv1d_transpose conv2d "
        "conv2d_transpose conv3d conv3d_transpose conv_transpose convolution crelu "
        "ctc_beam_search_decoder ctc_greedy_decoder ctc_loss ctc_unique_labels depth_to_space "
        "depthwise_conv2d depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input "
        "dilation2d dropout elu embedding_lookup embedding_lookup_sparse erosion2d "
        "fixed_unigram_candidate_sampler fractional_avg_pool fractional_max_pool gelu "
        "in_top_k isotonic_regression l2_loss l2_normalize leaky_relu "
        "learned_unigram_candidate_sampler local_response_normalization log_poisson_loss "
        "log_softmax lrn max_pool max_pool1d max_pool2d max_pool3d max_pool_with_argmax "
        "moments nce_loss normalize_moments pool relu relu6 safe_embedding_lookup_sparse "
        "sampled_softmax_loss scale_regularization_loss selu separable_conv2d sigmoid "
        "sigmoid_cross_entropy_with_logits silu softmax softmax_cross_entropy_with_logits "
        "softplus softsign space_to_batch space_to_depth "
        "sparse_softmax_cross_entropy_with_logits sufficient_statistics swish tanh top_k "
        "weighted_cross_entropy_with_logits weighted_moments with_space_to_batch "
        "zero_fraction"
    ),
    "tf.signal": (
        "dct fft fft2d fft3d fftnd fftshift frame hamming_window hann_window idct ifft ifft2d "
        "ifft3d ifftnd ifftshift inverse_mdct inverse_stft inverse_stft_window_fn irfft "
        "irfft2d irfft3d irfftnd kaiser_bessel_derived_window kaiser_window "
        "linear_to_mel_weight_matrix mdct mfccs_from_log_mel_spectrograms overlap_and_add "
        "rfft rfft2d rfft3d rfftnd stft vorbis_window"
    ),
    "tf.random": (
        "all_candidate_sampler categorical create_rng_state fixed_unigram_candidate_sampler "
        "fold_in gamma get_global_generator learned_unigram_candidate_sampler "
        "log_uniform_candidate_sampler normal poisson set_global_generator set_seed shuffle "
        "split stateless_binomial stateless_categorical stateless_gamma stateless_normal "
        "stateless_parameterized_truncated_normal stateless_poisson "
        "stateless_truncated_normal stateless_uniform truncated_normal uniform "
        "uniform_candidate_sampler"
    ),
    "keras.ops": (
        "abs absolute adaptive_average_pool adaptive_max_pool add all allclose amax amin "
        "angle any append arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax "
        "argmin argpartition argsort array array_split associative_scan average average_pool "
        "bartlett batch_normalization binary_crossentropy bincount bitwise_and bitwise_invert "
        "bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman "
        "broadcast_to cast categorical_crossentropy cbrt cdist ceil celu cholesky "
        "cholesky_inverse clip concatenate cond conj conjugate conv conv_transpose "
        "convert_to_numpy convert_to_tensor copy corrcoef correlate cos cosh count_nonzero "
        "cross ctc_decode ctc_loss cumprod cumsum custom_gradient deg2rad depth_to_space "
        "depthwise_conv det diag diagflat diagonal diff digitize divide divide_no_nan dot "
        "dot_product_attention dsplit dstack dtype eig eigh einsum elu empty empty_like equal "
        "erf erfc erfinv exp exp2 expand_dims expm1 extract_sequences eye fabs fft fft2 flip "
        "fliplr flipud floor floor_divide fmax fmin fmod fold fori_loop full full_like gcd "
        "gelu geomspace get_item glu greater greater_equal hamming hanning hard_shrink "
        "hard_sigmoid hard_silu hard_swish hard_tanh heaviside histogram hsplit hstack hypot "
        "i0 identity ifft2 imag in_top_k inner inv irfft is_tensor isclose isfinite isin "
        "isinf isnan isneginf isposinf isreal istft jvp kaiser kron layer_normalization lcm "
        "ldexp leaky_relu left_shift less less_equal linspace log log10 log1p log2 "
        "log_sigmoid log_softmax logaddexp logaddexp2 logdet logical_and logical_not "
        "logical_or logical_xor logspace logsumexp lstsq lu_factor map matmul matrix_rank max "
        "max_pool maximum mean median meshgrid min minimum mod moments moveaxis multi_hot "
        "multiply nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean "
        "nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar ndim "
        "negative nextafter nonzero norm normalize not_equal one_hot ones ones_like outer pad "
        "percentile pinv polar power prod psnr ptp qr quantile rad2deg ravel real rearrange "
        "reciprocal relu relu6 repeat reshape rfft right_shift rms_normalization roll rot90 "
        "round rsqrt saturate_cast scan scatter scatter_update searchsorted segment_max "
        "segment_min segment_prod segment_sum select selu separable_conv shape sigmoid sign "
        "signbit silu sin sinc sinh size slice slice_update slogdet soft_shrink softmax "
        "softplus softsign solve solve_triangular sort space_to_depth "
        "sparse_categorical_crossentropy sparse_plus sparse_sigmoid sparsemax split sqrt "
        "square squareplus squeeze stack std stft stop_gradient subtract sum svd swapaxes "
        "swish switch take take_along_axis tan tanh tanh_shrink tensordot threshold tile "
        "top_k trace transpose trapezoid tri tril triu true_divide trunc unfold unique "
        "unravel_index unstack vander var vdot vectorize vectorized_map view view_as_complex "
        "view_as_real vsplit vstack where while_loop zeros zeros_like"
    ),
    "array API": (
        "abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype "
        "atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or "
        "bitwise_right_shift bitwise_xor broadcast_arrays broadcast_shapes broadcast_to "
        "can_cast ceil clip concat conj copysign cos cosh count_nonzero cumulative_prod "
        "cumulative_sum diff divide empty empty_like equal exp expand_dims expm1 eye finfo "
        "flip floor floor_divide from_dlpack full full_like greater greater_equal hypot iinfo "
        "imag isdtype isfinite isin isinf isnan less less_equal linspace log log10 log1p log2 "
        "logaddexp logical_and logical_not logical_or logical_xor matmul matrix_transpose max "
        "maximum mean meshgrid min minimum moveaxis multiply negative nextafter nonzero "
        "not_equal ones ones_like permute_dims positive pow prod real reciprocal remainder "
        "repeat reshape result_type roll round searchsorted sign signbit sin sinh sort sqrt "
        "square squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile "
        "tril triu trunc unique_all unique_counts unique_inverse unique_values unstack var "
        "vecdot where zeros zeros_like"
    ),
    "array API linalg": (
        "NamedTuple cholesky cross det diagonal eig eigh eigvals eigvalsh inv matmul "
        "matrix_norm matrix_power matrix_rank matrix_transpose outer pinv qr reshape slogdet "
        "solve svd svdvals tensordot trace vecdot vector_norm"
    ),
    "array API fft": (
        "fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn"
    ),
    "autograd.numpy": (
        "abs absolute acos acosh add amax amin angle arccos arccosh arcsin arcsinh arctan "
        "arctan2 arctanh array_split asin asinh astype atan atan2 atanh atleast_1d atleast_2d "
        "atleast_3d broadcast_to clip conj conjugate cos cosh cross cumsum deg2rad degrees "
        "diag diagonal diff divide dot dsplit einsum exp exp2 expand_dims expm1 fabs fliplr "
        "flipud fmax fmin full gradient hsplit hypot imag inner kron linspace log log10 log1p "
        "log2 logaddexp logaddexp2 matmul max maximum min minimum mod moveaxis multiply "
        "nan_to_num negative outer pad partition permute_dims pow power prod rad2deg radians "
        "ravel real real_if_close reciprocal remainder repeat reshape roll rollaxis rot90 sin "
        "sinc sinh sort split sqrt square squeeze subtract sum swapaxes tan tanh tensordot "
        "tile trace transpose tril triu true_divide vsplit"
    ),
    "autograd.numpy.linalg": ("cholesky det eig eigh inv pinv slogdet solve svd"),
    "autograd.numpy.fft": (
        "fft fft2 fftn fftshift ifft ifft2 ifftn ifftshift irfft irfft2 irfftn rfft rfft2 rfftn"
    ),
}
"""Functions by namespace, separated by spaces."""

REFUSED = {
    "of graphs, files, strings, devices": (
        "as_string check_pinned edit_distance fingerprint import_graph_def init_scope "
        "load_library load_op_library make_ndarray make_tensor_proto "
        "nondifferentiable_batch_function parallel_stack random_index_shuffle "
        "register_tensor_conversion_function variable_creator_scope"
    ),
    "raw operations, without a gradient or without a kernel for processors in the original": (
        "approx_top_k conv conv2d_backprop_filter_v2 conv2d_backprop_input_v2"
    ),
    "windows that are drawn at random": "fractional_avg_pool fractional_max_pool",
    "tables of direction numbers": "sobol_sample",
    "of ragged and sparse tensors": (
        "ragged_fill_empty_rows ragged_fill_empty_rows_grad embedding_lookup_sparse "
        "safe_embedding_lookup_sparse"
    ),
    "samples from files, or from what was seen before": (
        "fixed_unigram_candidate_sampler learned_unigram_candidate_sampler"
    ),
    "searches for labels, without a gradient; in TensorFlow sparse tensors": (
        "ctc_beam_search_decoder ctc_greedy_decoder ctc_decode"
    ),
}
"""Names that are left out on purpose, by reason."""
