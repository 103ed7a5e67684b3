#pragma once

#include "orthant/wrapper/core.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace orthant::wrapper {

/// Copies a tensor from one order to another.
class Transfer {
 public:
  enum class Kind {
    where_needed,  ///< nothing if both orders are the same
    always,
    adds  ///< to what is there
  };
  Transfer() = default;
  Transfer(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to, Kind kind, const Library& library);

  [[nodiscard]] bool is_needed() const { return needed_; }
  void run(const Library& library, void* from, void* to) const;

 private:
  bool needed_ = false;
  kernels::onednn::Call call_;
};

/// One way to compute pieces of a problem: a kernel, and copies of what it wants in another order. Pieces of all samples
/// are computed one after the other, between begin() and end().
class Way {
 public:
  Way(const Problem& problem, std::unique_ptr<Core> core, const Library& library);

  [[nodiscard]] std::string name() const { return core_->name(); }
  [[nodiscard]] std::int64_t samples() const { return samples_; }
  [[nodiscard]] std::int64_t workspace_bytes() const { return bytes_; }

  /// Brings the weights into the kernel's order.
  void begin(const Tensors& tensors, std::byte* workspace);
  /// Samples [first, first + samples()) of the tensors.
  void piece(const Tensors& tensors, std::int64_t first, std::byte* workspace);
  /// Writes gradients of weights, or adds them to what other ways have found.
  void end(const Tensors& tensors, std::byte* workspace, bool adds);

 private:
  /// A part of the workspace; without bytes it is not there.
  struct Area {
    std::int64_t offset = 0, bytes = 0;
    [[nodiscard]] void* in(std::byte* workspace, void* otherwise) const { return bytes ? workspace + offset : otherwise; }
  };
  Area area(std::int64_t bytes);

  const Library& library_;
  std::unique_ptr<Core> core_;
  model::Pass pass_;
  std::int64_t samples_, bytes_ = 0;
  std::int64_t src_step_, dst_step_;  ///< bytes from one sample to the next
  std::int64_t weight_count_, bias_count_ = 0;
  Transfer src_, weights_, dst_, added_weights_;
  Area src_area_, weights_area_, dst_area_, bias_area_, further_weights_, further_bias_, scratch_;
  bool is_first_ = true;
};

}  // namespace orthant::wrapper
