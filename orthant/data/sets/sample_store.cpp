#include "orthant/data/sets/sample_store.hpp"

#include "orthant/tensor/difference.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace orthant::data::sets {
namespace {

using tensor::Box;
using tensor::Layout;

constexpr std::int64_t item_bytes = sizeof(float);

/// The layout of `part` inside a dense box.
Layout layout_of(const Box& box, const Box& part) {
  return tensor::box_of(tensor::channels_last(extents_of(box)), tensor::relative(part, box.lo));
}

}  // namespace

SampleStore::SampleStore(const Intake& intake, Filling filling, int rank)
    : intake_(intake), filling_(std::move(filling)), rank_(rank), positions_(filling_.order.size()) {
  for (std::size_t i = 0; i < filling_.order.size(); ++i)
    positions_[static_cast<std::size_t>(filling_.order[i])] = static_cast<std::int64_t>(i);
  memory_ = io::LargeBlock(intake_.bytes(rank, filling_.kept));
}

std::optional<std::int64_t> SampleStore::position(std::int64_t sample) const {
  const std::int64_t position = positions_[static_cast<std::size_t>(sample)];
  return position < filling_.kept ? std::optional(position) : std::nullopt;
}

Box SampleStore::kept_box(std::int64_t sample, const Take& holder) const {
  const tensor::Shape& shape = holder.role == Role::source ? filling_.shape.input : filling_.shape.target;
  return source_box(filling_.orientation(sample), holder.box, shape);
}

Held SampleStore::held(std::int64_t sample, const Take& holder) const {
  assert(holder.rank == rank_ && position(sample));
  const Box box = kept_box(sample, holder);
  const std::int64_t batch = positions_[static_cast<std::size_t>(sample)] / intake_.mini_batch();
  const std::int64_t offset = intake_.bytes(rank_, batch * intake_.mini_batch()) + holder.offset_bytes;
  return {{memory_.data() + offset, static_cast<std::size_t>(box_bytes(box))}, box};
}

std::vector<Contribution> SampleStore::contributions(std::int64_t sample, Role role, const Box& box, int rank) const {
  const std::int64_t n = positions_[static_cast<std::size_t>(sample)] % intake_.mini_batch();
  struct Candidate {
    std::int64_t common;
    const Take* holder;
    Box box;
  };
  std::vector<Candidate> candidates;
  for (const Take& take : intake_.of(n)) {
    if (take.role != role) continue;
    const Box kept = kept_box(sample, take);
    const std::int64_t common = tensor::volume(tensor::intersection(kept, box));
    if (common > 0) candidates.push_back({common, &take, kept});
  }
  // Takes that have most of the box come first; among equals this rank, then the lowest rank.
  std::stable_sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
    if (a.common != b.common) return a.common > b.common;
    return a.holder->rank == rank && b.holder->rank != rank;
  });
  std::vector<Contribution> found;
  std::vector<Box> open{box};
  for (const Candidate& candidate : candidates) {
    std::vector<Box> rest;
    for (const Box& wanted : open) {
      const Box common = tensor::intersection(wanted, candidate.box);
      if (!is_empty(common)) found.push_back({candidate.holder, common});
      for (const Box& left : tensor::difference(wanted, candidate.box)) rest.push_back(left);
    }
    open = std::move(rest);
  }
  assert(open.empty());
  return found;
}

bool is_contiguous(const Box& box, const Box& part) { return tensor::is_dense(layout_of(box, part)); }

std::span<std::byte> bytes_of(const Held& from, const Box& part) {
  assert(is_contiguous(from.box, part));
  return from.bytes.subspan(static_cast<std::size_t>(layout_of(from.box, part).offset * item_bytes),
                            static_cast<std::size_t>(box_bytes(part)));
}

void copy_part(const Held& from, const Held& to, const Box& part) {
  const Layout source = layout_of(from.box, part);
  const Layout target = layout_of(to.box, part);
  const tensor::Shape& extents = source.extents;
  // Rows of whole pixels are copied in one go.
  const bool rows = source.strides.w == extents.c && target.strides.w == extents.c;
  const std::int64_t run = (rows ? extents.w : 1) * extents.c * item_bytes;
  for (std::int64_t d = 0; d < extents.d; ++d) {
    for (std::int64_t h = 0; h < extents.h; ++h) {
      for (std::int64_t w = 0; w < (rows ? 1 : extents.w); ++w) {
        const auto at = [&](const Layout& layout) {
          return (layout.offset + d * layout.strides.d + h * layout.strides.h + w * layout.strides.w) * item_bytes;
        };
        std::memcpy(to.bytes.data() + at(target), from.bytes.data() + at(source), static_cast<std::size_t>(run));
      }
    }
  }
}

}  // namespace orthant::data::sets
