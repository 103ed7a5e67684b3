#pragma once

#include "orthant/model/ops.hpp"

#include <dnnl.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace orthant::kernels::onednn {

/// Sets the size of the OpenMP team that oneDNN uses in this scope. oneDNN asks for it at creation and at execution.
class TeamScope {
 public:
  explicit TeamScope(int threads);
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;
  ~TeamScope();

 private:
  int before_;
};

/// One argument of a primitive: its role (DNNL_ARG_SRC, ...) and its memory.
struct Slot {
  int role = 0;
  dnnl::memory::desc memory;
};

/// A primitive with its arguments laid out once: running it again only exchanges pointers.
class Call {
 public:
  Call() = default;
  Call(const dnnl::engine& engine, dnnl::primitive primitive, const std::vector<Slot>& slots);

  /// `data` has one pointer per slot.
  void run(const dnnl::stream& stream, std::span<void* const> data) const;

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

/// Copies a tensor from one memory order to another.
Call make_reorder(const dnnl::engine& engine, const dnnl::memory::desc& from, const dnnl::memory::desc& to);

/// User-managed scratchpad, and `activation` applied to what the primitive writes.
dnnl::primitive_attr attributes(const model::Activation& activation);

/// False for implementations that our own kernels beat: reference loops (hundreds of times slower), and matrix
/// products of unfolded tensors (large scratchpads). oneDNN offers those last.
bool is_fast(std::string_view name);

/// `bytes` rounded up to whole cache lines.
std::int64_t padded_bytes(std::size_t bytes);

}  // namespace orthant::kernels::onednn
