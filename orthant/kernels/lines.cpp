#include "orthant/kernels/lines.hpp"

#include "orthant/base/error.hpp"

namespace orthant::kernels {
namespace {

using tensor::Dim;
using tensor::Layout;

constexpr std::array<Dim, 4> pixel_dims{Dim::n, Dim::d, Dim::h, Dim::w};

void check_alike(const Layout& layout, const Layout& first) {
  if (layout.extents != first.extents) {
    base::fail(base::Exit::internal, "a kernel got tensors of {} and {}; they must have the same shape",
               tensor::to_text(first.extents), tensor::to_text(layout.extents));
  }
  if (layout.extents.c > 1 && layout.strides.c != 1) {
    base::fail(base::Exit::internal, "a kernel got channels that are {} items apart; they must be contiguous",
               layout.strides.c);
  }
}

/// The smallest factor that gives rows of whole vectors of up to 16 items and at least 64 of them.
std::int64_t factor_for(std::int64_t channels) {
  constexpr std::int64_t lanes = 16, wanted = 64, widest = 4096;
  for (std::int64_t factor = 1; factor * channels <= widest; ++factor) {
    if (factor * channels % lanes == 0 && factor * channels >= wanted) return factor;
  }
  return 1;
}

}  // namespace

Line widened(const Line& line, std::int64_t factor) {
  Line wide = line;
  wide.pixels /= factor;
  wide.channels *= factor;
  for (std::int64_t& stride : wide.strides) stride *= factor;
  return wide;
}

Line remainder(const Line& line, std::int64_t factor) {
  Line rest = line;
  const std::int64_t taken = line.pixels / factor * factor;
  rest.pixels -= taken;
  for (std::size_t i = 0; i < most_layouts; ++i) rest.offsets[i] += taken * line.strides[i];
  return rest;
}

Lines::Lines(std::span<const Layout* const> layouts) {
  const Layout& first = *layouts.front();
  pixels_ = tensor::pixels(first.extents);
  channels_ = first.extents.c;
  std::size_t last = 3;  // the merged dim being filled
  std::size_t index = 0;
  for (const Layout* layout : layouts) {
    check_alike(*layout, first);
    offsets_[index] = layout->offset;
    dim_strides_[last][index++] = layout->strides.w;
  }
  extents_[last] = first.extents.w;
  for (const Dim dim : {Dim::h, Dim::d, Dim::n}) {
    if (first.extents[dim] == 1) continue;
    bool merges = true;
    index = 0;
    for (const Layout* layout : layouts) {
      const bool touches = layout->strides[dim] == dim_strides_[last][index++] * extents_[last];
      merges = merges && (extents_[last] == 1 || touches);
    }
    if (!merges) --last;
    index = 0;
    for (const Layout* layout : layouts) {
      if (extents_[last] == 1) dim_strides_[last][index] = layout->strides[dim];
      ++index;
    }
    extents_[last] *= first.extents[dim];
  }
  bool dense = true;
  for (std::size_t i = 0; i < layouts.size(); ++i) dense = dense && dim_strides_[3][i] == channels_;
  width_factor_ = dense ? factor_for(std::max<std::int64_t>(channels_, 1)) : 1;
}

Line Lines::line_at(std::int64_t begin, std::int64_t end) const {
  Line line{.pixels = 0, .channels = channels_, .offsets = offsets_, .strides = dim_strides_[3]};
  std::int64_t rest = begin;
  for (std::size_t dim = 4; dim-- > 0;) {
    const std::int64_t at = rest % extents_[dim];
    rest /= extents_[dim];
    if (dim == 3) line.pixels = std::min(extents_[dim] - at, end - begin);
    for (std::size_t i = 0; i < most_layouts; ++i) line.offsets[i] += at * dim_strides_[dim][i];
  }
  return line;
}

Lines SampleLines::lines_of(bool apart, std::initializer_list<const Layout*> layouts) {
  std::array<Layout, most_layouts> copies{};
  std::array<const Layout*, most_layouts> pointers{};
  std::size_t count = 0;
  for (const Layout* layout : layouts) {
    copies.at(count) = *layout;
    if (apart) copies[count].extents.n = 1;
    pointers[count] = &copies[count];
    ++count;
  }
  return Lines(std::span<const Layout* const>(pointers.data(), count));
}

SampleLines::SampleLines(bool apart, std::initializer_list<const Layout*> layouts) : lines_(lines_of(apart, layouts)) {
  if (!apart) return;
  parts_ = (*layouts.begin())->extents.n;
  std::size_t index = 0;
  for (const Layout* layout : layouts) steps_[index++] = layout->strides.n;
}

}  // namespace orthant::kernels
