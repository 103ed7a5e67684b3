#pragma once

#include "orthant/wrapper/core.hpp"
#include "orthant/wrapper/part.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

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

/// One way to compute pieces of a problem: a kind of kernel for each of its parts, and copies of what they want in
/// another order. Pieces of all samples are computed one after the other, between begin() and end().
class Way {
 public:
  /// `cores` are for the different parts, `core_of_part` says which is for which.
  struct Made {
    Cut cut;
    std::vector<Part> parts;
    std::vector<std::size_t> core_of_part;
    std::vector<std::unique_ptr<Core>> cores;
  };
  Way(const Problem& problem, Made made, const Library& library);

  /// "winograd@8": a kind of kernel and its cut.
  [[nodiscard]] const std::string& label() const { return label_; }
  [[nodiscard]] std::int64_t samples() const { return cut_.samples; }
  [[nodiscard]] std::int64_t workspace_bytes() const { return bytes_; }

  /// Brings the weights into the kernels' order.
  void begin(const Tensors& tensors, std::byte* workspace);
  /// Samples [first, first + samples()) of the tensors.
  void piece(const Tensors& tensors, std::int64_t first, std::byte* workspace);
  /// Writes gradients of weights, or adds them to what other ways have found.
  void end(const Tensors& tensors, std::byte* workspace, bool adds);

 private:
  /// A range of the workspace; without bytes it is not there.
  struct Area {
    std::int64_t offset = 0, bytes = 0;
    [[nodiscard]] void* in(std::byte* workspace, void* otherwise) const {
      return bytes ? workspace + offset : otherwise;
    }
  };
  /// A kernel with what it needs around it.
  struct Unit {
    std::unique_ptr<Core> core;
    Transfer src, dst;
    Area src_area, dst_area, scratch;
  };
  struct Step {
    std::size_t unit = 0;
    std::int64_t src_bytes = 0, dst_bytes = 0;  ///< from the first item of the piece
  };

  Area area(std::int64_t bytes);
  Unit make_unit(const Problem& part, std::unique_ptr<Core> core);
  void lay_out_weights(const Problem& problem, bool divided);
  void run(const Unit& unit, const Tensors& outer, std::byte* workspace);

  const Library& library_;
  std::string label_;
  Cut cut_;
  model::Pass pass_;
  std::vector<Unit> units_;
  std::vector<Step> steps_;
  std::int64_t src_step_, dst_step_;  ///< bytes from one sample to the next
  std::int64_t weight_count_ = 0, bias_count_ = 0;
  Transfer weights_, added_weights_;
  Area weights_area_, bias_area_, further_weights_, further_bias_;
  std::int64_t bytes_ = 0;
  bool is_first_ = true;
};

struct WayOptions {
  CoreOptions core;
  std::int64_t limit_bytes = 0;
  bool ours_only = false;
};

/// All ways to compute pieces of this cut within the limit, the rule's first.
std::vector<std::unique_ptr<Way>> make_ways(const Problem& problem, const Cut& cut, const WayOptions& options,
                                            const Library& library);

}  // namespace orthant::wrapper
