#include "orthant/data/arrays/convert_box.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/data/arrays/stream.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <type_traits>
#include <utility>

namespace orthant::data::arrays {
namespace {

using base::Exit;
using base::fail;
using tensor::Box;
using tensor::Layout;
using tensor::Shape;

/// Files are read in pieces that are small enough to stay in the caches until they are converted.
constexpr std::int64_t pixel_piece_bytes = 256 << 10;
constexpr std::int64_t channel_piece_bytes = 64 << 10;
constexpr std::int64_t interleaved_piece = 16 << 10;
constexpr std::int64_t interleaved_words = 64 << 10;
/// Results that are too large for any cache are written with non-temporal stores, if they come in long runs.
constexpr std::int64_t cached_items = 4 << 20;
constexpr std::int64_t short_run_items = 2 << 10;

/// Converts numbers to floats and returns the index of the first that is not finite, or -1.
struct ToFloat {
  using Item = float;
  NumberType type;
  bool past_caches;

  /// Numbers that were fetched straight into `to` are only checked.
  std::int64_t operator()(std::span<const std::byte> from, float* to, std::int64_t stride) const {
    if (from.data() != reinterpret_cast<const std::byte*>(to)) put(from, to, stride);
    if (is_integer(type)) return -1;
    const std::int64_t count = static_cast<std::int64_t>(from.size()) / bytes_of(type);
    if (all_finite(to, count, stride)) return -1;
    std::int64_t bad = 0;
    while (std::isfinite(to[bad * stride])) ++bad;
    return bad;
  }
  void put(std::span<const std::byte> from, float* to, std::int64_t stride) const {
    past_caches&& stride == 1 ? convert_past_caches(type, from, to) : convert(type, from, to, stride);
  }
  [[nodiscard]] double value(std::span<const std::byte> from, std::int64_t item) const {
    float number = 0;
    const auto size = static_cast<std::size_t>(bytes_of(type));
    convert(type, from.subspan(static_cast<std::size_t>(item) * size, size), &number, 1);
    return number;
  }
};

/// Converts numbers to labels and returns the index of the first that is not a class, or -1.
struct ToLabel {
  using Item = std::int32_t;
  NumberType type;
  std::int64_t classes;
  std::vector<std::int64_t> numbers{};

  std::int64_t operator()(std::span<const std::byte> from, std::int32_t* to, std::int64_t stride) {
    const std::int64_t count = static_cast<std::int64_t>(from.size()) / bytes_of(type);
    numbers.resize(static_cast<std::size_t>(count));
    convert(type, from, numbers.data(), 1);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t number = numbers[static_cast<std::size_t>(i)];
      if (number < 0 || number >= classes) return i;
      to[i * stride] = static_cast<std::int32_t>(number);
    }
    return -1;
  }
  [[nodiscard]] double value(std::span<const std::byte> from, std::int64_t item) const {
    std::int64_t number = 0;
    const auto size = static_cast<std::size_t>(bytes_of(type));
    convert(type, from.subspan(static_cast<std::size_t>(item) * size, size), &number, 1);
    return static_cast<double>(number);
  }
};

/// Walks a box in runs of pixels that are contiguous in the file and evenly spaced in memory.
template <class Convert>
class Walk {
 public:
  using Item = typename Convert::Item;

  Walk(const Stored& from, const Box& box, const Fetch& fetch, const Layout& to, Item* into, Convert convert)
      : from_(from),
        box_(box),
        extents_(extents_of(box)),
        fetch_(fetch),
        to_(to),
        into_(into),
        convert_(std::move(convert)) {
    const Layout& file = from.layout;
    rows_joined_ = extents_.w == file.extents.w && to.strides.h == to.strides.w * extents_.w;
    slices_joined_ = rows_joined_ && extents_.h == file.extents.h && to.strides.d == to.strides.h * extents_.h;
    whole_pixels_ = file.extents.c > 1 && file.strides.c == 1;
    size_ = bytes_of(from.type);
    as_stored_ = std::is_same_v<Item, float> && from.type == NumberType::f32 && !from.big_endian;
  }

  std::optional<BadItem> run() {
    std::int64_t pixels = extents_.w;
    if (rows_joined_) pixels *= extents_.h;
    if (slices_joined_) pixels *= extents_.d;
    for (std::int64_t n = 0; n < extents_.n; ++n) {
      for (std::int64_t d = 0; d < (slices_joined_ ? 1 : extents_.d); ++d) {
        for (std::int64_t h = 0; h < (rows_joined_ ? 1 : extents_.h); ++h) {
          start_ = {.n = n, .c = 0, .d = d, .h = h, .w = 0};
          convert_run(pixels);
          if (bad_) return bad_;
        }
      }
    }
    return std::nullopt;
  }

 private:
  /// The first item of the run in the file and in memory.
  [[nodiscard]] std::int64_t in_file(std::int64_t c) const {
    std::int64_t item = from_.layout.offset + c * from_.layout.strides.c;
    for (const tensor::Dim dim : {tensor::Dim::n, tensor::Dim::d, tensor::Dim::h, tensor::Dim::w})
      item += (box_.lo[dim] + start_[dim]) * from_.layout.strides[dim];
    return item;
  }
  [[nodiscard]] std::int64_t in_memory() const {
    return to_.offset + start_.n * to_.strides.n + start_.d * to_.strides.d + start_.h * to_.strides.h;
  }

  /// `room` is where the items belong if they need no conversion, or null.
  std::span<const std::byte> bytes_of_items(std::int64_t first, std::int64_t count, Item* room) {
    const std::span<const std::byte> bytes =
        fetch_(first * size_, count * size_, as_stored_ ? reinterpret_cast<std::byte*>(room) : nullptr);
    if (!from_.big_endian || size_ == 1) return bytes;
    turned_.assign(bytes.begin(), bytes.end());
    for (auto at = turned_.begin(); at != turned_.end(); at += size_) std::reverse(at, at + size_);
    return turned_;
  }

  void note(std::int64_t pixel, std::int64_t c, double value) {
    const Shape at{.n = start_.n,
                   .c = c,
                   .d = start_.d + pixel / (extents_.w * extents_.h),
                   .h = start_.h + pixel / extents_.w % extents_.h,
                   .w = pixel % extents_.w};
    bad_ = BadItem{.at = at, .value = value};
    for (const tensor::Dim dim : tensor::all_dims) bad_->at[dim] += box_.lo[dim];
  }

  void convert_run(std::int64_t pixels) {
    if (whole_pixels_) return convert_pixels(pixels);
    if constexpr (std::is_same_v<Item, float>) {
      const bool words = (from_.type == NumberType::i16 || from_.type == NumberType::u16) && !from_.big_endian;
      if (extents_.c == 4 && to_.strides.c == 1 && to_.strides.w == 4)
        return words ? convert_four_word_channels(pixels) : convert_four_channels(pixels);
    }
    convert_channels(pixels);
  }

  /// Four channels, channels first: each is converted, and then they are interleaved.
  void convert_four_channels(std::int64_t pixels) {
    const ToFloat in_cache{.type = from_.type, .past_caches = false};
    std::array<const float*, 4> channels{};
    for (std::int64_t begin = 0; begin < pixels; begin += interleaved_piece) {
      const std::int64_t count = std::min(interleaved_piece, pixels - begin);
      lanes_.resize(static_cast<std::size_t>(4 * interleaved_piece));
      for (std::int64_t c = 0; c < 4; ++c) {
        float* lane = lanes_.data() + c * interleaved_piece;
        const auto bytes = bytes_of_items(in_file(box_.lo.c + c) + begin, count, lane);
        const std::int64_t bad = in_cache(bytes, lane, 1);
        if (bad >= 0) return note(begin + bad, c, convert_.value(bytes, bad));
        channels.at(static_cast<std::size_t>(c)) = lane;
      }
      interleave(channels, count, into_ + in_memory() + begin * to_.strides.w,
                 convert_.past_caches && count >= short_run_items);
    }
  }

  /// The same for 16-bit integers, which are interleaved before they are converted.
  void convert_four_word_channels(std::int64_t pixels) {
    words_.resize(static_cast<std::size_t>(8 * interleaved_words));
    std::array<const std::byte*, 4> channels{};
    for (std::int64_t begin = 0; begin < pixels; begin += interleaved_words) {
      const std::int64_t count = std::min(interleaved_words, pixels - begin);
      for (std::int64_t c = 0; c < 4; ++c) {
        std::byte* room = words_.data() + c * 2 * interleaved_words;
        const auto bytes = fetch_((in_file(box_.lo.c + c) + begin) * 2, count * 2, room);
        // Bytes that were not put into the room are valid only until the next call.
        if (bytes.data() != room) std::copy(bytes.begin(), bytes.end(), room);
        channels.at(static_cast<std::size_t>(c)) = room;
      }
      interleave_words(channels, from_.type == NumberType::i16, count, into_ + in_memory() + begin * 4,
                       convert_.past_caches && count >= short_run_items);
    }
  }

  /// Channels first, or a single channel: one run per channel.
  void convert_channels(std::int64_t pixels) {
    const std::int64_t most = channel_piece_bytes / size_;
    for (std::int64_t begin = 0; begin < pixels; begin += most) {
      const std::int64_t count = std::min(most, pixels - begin);
      for (std::int64_t c = 0; c < extents_.c; ++c) {
        Item* at = into_ + in_memory() + c * to_.strides.c + begin * to_.strides.w;
        const auto bytes = bytes_of_items(in_file(box_.lo.c + c) + begin, count, to_.strides.w == 1 ? at : nullptr);
        const std::int64_t bad = convert_(bytes, at, to_.strides.w);
        if (bad >= 0) return note(begin + bad, c, convert_.value(bytes, bad));
      }
    }
  }

  /// Channels last: one run with all channels.
  void convert_pixels(std::int64_t pixels) {
    const std::int64_t channels = from_.layout.extents.c;
    const bool dense = extents_.c == channels && to_.strides.c == 1 && to_.strides.w == channels;
    const std::int64_t most = std::max<std::int64_t>(1, pixel_piece_bytes / (size_ * channels));
    for (std::int64_t begin = 0; begin < pixels && !bad_; begin += most) {
      const std::int64_t count = std::min(most, pixels - begin);
      Item* at = into_ + in_memory() + begin * to_.strides.w;
      const auto bytes = bytes_of_items(in_file(0) + begin * channels, count * channels, dense ? at : nullptr);
      if (!dense) {
        pick_channels(bytes, begin, count, at);
        continue;
      }
      const std::int64_t bad = convert_(bytes, at, 1);
      if (bad >= 0) note(begin + bad / channels, bad % channels, convert_.value(bytes, bad));
    }
  }

  void pick_channels(std::span<const std::byte> bytes, std::int64_t begin, std::int64_t count, Item* at) {
    for (std::int64_t pixel = 0; pixel < count && !bad_; ++pixel) {
      const std::int64_t first = (pixel * from_.layout.extents.c + box_.lo.c) * size_;
      const auto some = bytes.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(extents_.c * size_));
      const std::int64_t bad = convert_(some, at + pixel * to_.strides.w, to_.strides.c);
      if (bad >= 0) note(begin + pixel, bad, convert_.value(some, bad));
    }
  }

  const Stored& from_;
  const Box& box_;
  Shape extents_;
  const Fetch& fetch_;
  const Layout& to_;
  Item* into_;
  Convert convert_;
  bool rows_joined_ = false, slices_joined_ = false, whole_pixels_ = false;
  bool as_stored_ = false;  ///< the bytes in the file are those wanted in memory
  std::int64_t size_ = 0;
  Shape start_;
  std::vector<std::byte> turned_;
  std::vector<Item> lanes_;
  std::vector<std::byte> words_;
  std::optional<BadItem> bad_;
};

std::string position_text(const ArrayName& name, const Layout& layout, const Shape& at) {
  std::int64_t item = layout.offset;
  for (const tensor::Dim dim : tensor::all_dims) item += at[dim] * layout.strides[dim];
  std::vector<std::int64_t> index(name.extents.size());
  for (std::size_t dim = index.size(); dim-- > 0; item /= name.extents[dim]) index[dim] = item % name.extents[dim];
  return fmt::format("'{}' at [{}]", name.file, fmt::join(index, ", "));
}

}  // namespace

std::optional<BadItem> convert_box(const Stored& from, const Box& box, const Fetch& fetch, const Layout& to,
                                   float* into) {
  assert(is_empty(box) || extents_of(box) == to.extents);
  if (is_empty(box)) return std::nullopt;
  return Walk(from, box, fetch, to, into, ToFloat{.type = from.type, .past_caches = volume(box) > cached_items}).run();
}

std::optional<BadItem> convert_labels(const Stored& from, const Box& box, const Fetch& fetch, const Layout& to,
                                      std::int32_t* into, std::int64_t classes) {
  assert(is_empty(box) || extents_of(box) == to.extents);
  if (is_empty(box)) return std::nullopt;
  return Walk(from, box, fetch, to, into, ToLabel{from.type, classes}).run();
}

void fail_not_finite(const ArrayName& name, const Layout& layout, const BadItem& bad) {
  fail(Exit::bad_data, "{} holds {}; only finite numbers can be trained on", position_text(name, layout, bad.at),
       bad.value);
}

void fail_no_class(const ArrayName& name, const Layout& layout, const BadItem& bad, std::int64_t classes) {
  fail(Exit::bad_data, "{} holds label {:.0f}, but the network has classes 0 to {}",
       position_text(name, layout, bad.at), bad.value, classes - 1);
}

}  // namespace orthant::data::arrays
