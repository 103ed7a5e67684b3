#pragma once

#include <cstddef>
#include <string_view>

namespace orthant::model {

/// The place of an argument in the list of its task, and its name: kernels write `arguments[at::conv_forward::src]`.
struct Position {
  std::size_t index = 0;
  std::string_view name;

  constexpr operator std::size_t() const { return index; }
};

/// The order of every task's arguments. The passes of a convolution are those of a dense layer, too.
namespace at {

namespace conv_forward {
inline constexpr Position src{0, "src"}, weights{1, "weights"}, bias{2, "bias"}, dst{3, "dst"};
}
namespace conv_backward_data {
inline constexpr Position diff_dst{0, "diff_dst"}, weights{1, "weights"}, diff_src{2, "diff_src"};
}
namespace conv_backward_weights {
inline constexpr Position src{0, "src"}, diff_dst{1, "diff_dst"}, diff_weights{2, "diff_weights"},
    diff_bias{3, "diff_bias"};
}
namespace prepare_weights {
inline constexpr Position weights{0, "weights"}, prepared{1, "prepared"};
}

namespace pool_forward {
inline constexpr Position src{0, "src"}, dst{1, "dst"}, argmax{2, "argmax"};
}
namespace pool_backward {
inline constexpr Position diff_dst{0, "diff_dst"}, argmax{1, "argmax"}, y{2, "y"}, diff_src{3, "diff_src"};
}

namespace norm_sums_forward {
inline constexpr Position x{0, "x"}, sums{1, "sums"};
}
namespace norm_sums_backward {
inline constexpr Position diff_y{0, "diff_y"}, diff_y2{1, "diff_y2"}, x{2, "x"}, y{3, "y"}, gamma{4, "gamma"},
    beta{5, "beta"}, saved{6, "saved"}, sums{7, "sums"}, diff_gamma{8, "diff_gamma"}, diff_beta{9, "diff_beta"},
    diff_residual{10, "diff_residual"};
}

namespace norm_forward {
inline constexpr Position x{0, "x"}, gamma{1, "gamma"}, beta{2, "beta"}, running_mean{3, "running_mean"},
    running_var{4, "running_var"}, sums{5, "sums"}, saved{6, "saved"}, residual{7, "residual"}, y{8, "y"};
}
namespace norm_backward {
inline constexpr Position diff_y{0, "diff_y"}, diff_y2{1, "diff_y2"}, x{2, "x"}, y{3, "y"}, gamma{4, "gamma"},
    beta{5, "beta"}, saved{6, "saved"}, sums{7, "sums"}, diff_x{8, "diff_x"};
}

namespace activation_forward {
inline constexpr Position src{0, "src"}, bias{1, "bias"}, dst{2, "dst"};
}
namespace activation_backward {
inline constexpr Position diff_dst{0, "diff_dst"}, diff_dst2{1, "diff_dst2"}, y{2, "y"}, diff_src{3, "diff_src"};
}

namespace softmax_forward {
inline constexpr Position src{0, "src"}, dst{1, "dst"};
}
namespace softmax_backward {
inline constexpr Position diff_dst{0, "diff_dst"}, y{1, "y"}, diff_src{2, "diff_src"};
}

namespace pixel_norm_forward {
inline constexpr Position x{0, "x"}, gamma{1, "gamma"}, beta{2, "beta"}, saved{3, "saved"}, y{4, "y"};
}
namespace pixel_norm_backward {
inline constexpr Position diff_y{0, "diff_y"}, x{1, "x"}, gamma{2, "gamma"}, saved{3, "saved"}, diff_x{4, "diff_x"},
    diff_gamma{5, "diff_gamma"}, diff_beta{6, "diff_beta"};
}
namespace prelu_forward {
inline constexpr Position src{0, "src"}, weights{1, "weights"}, dst{2, "dst"};
}
namespace prelu_backward {
inline constexpr Position diff_dst{0, "diff_dst"}, src{1, "src"}, weights{2, "weights"}, diff_src{3, "diff_src"},
    diff_weights{4, "diff_weights"};
}
namespace product {
inline constexpr Position a{0, "a"}, b{1, "b"}, bias{2, "bias"}, dst{3, "dst"};
}
namespace product_sums {
inline constexpr Position a{0, "a"}, b{1, "b"}, dst{2, "dst"};
}
namespace remap {
inline constexpr Position src{0, "src"}, dst{1, "dst"};
}

namespace peaks_forward {
inline constexpr Position src{0, "src"}, dst{1, "dst"};
}
namespace peaks_backward {
inline constexpr Position diff_dst{0, "diff_dst"}, dst{1, "dst"}, diff_src{2, "diff_src"};
}
namespace highest_peak_forward {
inline constexpr Position src{0, "src"}, dst{1, "dst"};
}
namespace highest_peak_backward {
inline constexpr Position diff_dst{0, "diff_dst"}, src{1, "src"}, diff_src{2, "diff_src"};
}

namespace copy {
inline constexpr Position src{0, "src"}, dst{1, "dst"};
}
namespace fill {
inline constexpr Position dst{0, "dst"};
}
namespace add {
inline constexpr Position a{0, "a"}, b{1, "b"}, dst{2, "dst"};
}
namespace dropout {
inline constexpr Position src{0, "src"}, dst{1, "dst"};
}
namespace bias_gradient {
inline constexpr Position diff_dst{0, "diff_dst"}, diff_bias{1, "diff_bias"};
}

namespace loss_sums {
inline constexpr Position output{0, "output"}, target{1, "target"}, sums{2, "sums"};
}
namespace loss {
inline constexpr Position output{0, "output"}, target{1, "target"}, sums{2, "sums"}, diff_output{3, "diff_output"},
    loss{4, "loss"};
}

/// What others keep follows from `kept` on.
namespace update {
inline constexpr Position weights{0, "weights"}, gradient{1, "gradient"}, state0{2, "state0"}, state1{3, "state1"},
    arrived{4, "arrived"}, kept{5, "kept"};
}

}  // namespace at
}  // namespace orthant::model
