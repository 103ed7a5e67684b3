#pragma once

#include "orthant/model/fields.hpp"
#include "orthant/model/ops.hpp"

#include <string>
#include <vector>

namespace orthant::model {

/// One layer of a network file, and what its numbers mean: lists have one entry per spatial dim.
struct LayerText {
  const Fields& fields;
  int spatial_count = 3;
  tensor::Shape src;  ///< of the first source; padding "same" depends on it
};

/// The words of `op:` and the keys that each allows besides name, op and from.
struct OpWord {
  std::string word;
  std::vector<std::string> keys;
  Op (*read)(const LayerText& layer) = nullptr;
};

const std::vector<OpWord>& op_words();

/// The words of `init:`, in the order of the enum.
const std::vector<std::string>& init_words();

/// The words of `mode:` of a resize and of a pad, in the orders of the enums.
const std::vector<std::string>& resize_words();
const std::vector<std::string>& pad_words();

/// `kernel`, `stride`, `dilation`, `pad`. A pool's stride is its kernel if it is not given.
tensor::Window read_window(const LayerText& layer, bool stride_is_kernel);
/// `pad` into pad_lo and pad_hi of a window.
void read_pad(const LayerText& layer, tensor::Window& window);
/// One number for all spatial dims, or a list of one for each; the others are `depth`.
tensor::Extent3 read_entries(const LayerText& layer, const std::string& key, const Document& value, std::int64_t depth);
/// The same of a key that may be left out.
tensor::Extent3 read_extent(const LayerText& layer, const std::string& key, std::int64_t depth, std::int64_t fallback);

}  // namespace orthant::model
