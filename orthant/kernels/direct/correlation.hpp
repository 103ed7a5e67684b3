#pragma once

#include "orthant/kernels/correlation.hpp"
#include "orthant/kernels/direct/rows.hpp"
#include "orthant/kernels/direct/tiles.hpp"

namespace orthant::kernels::direct {

/// What is applied to a sum over taps and channels.
struct Epilogue {
  bool bias = false;
  model::Activation activation;
};

/// Runs a Correlation. Every thread of a team calls prepare(), then, after a barrier, run(), with the same pointers.
class CorrelationKernel {
 public:
  struct Arguments : CorrelationArguments {
    float* scratch = nullptr;
  };

  CorrelationKernel(Correlation correlation, Epilogue epilogue, int threads);

  [[nodiscard]] std::int64_t scratch_floats() const;
  /// "tile14x2": pixels x vectors of the widest register tile.
  [[nodiscard]] std::string variant() const;
  void prepare(const Arguments& arguments, int thread) const;
  void run(const Arguments& arguments, int thread) const;

 private:
  /// How the terms of an output are cut into partial sums.
  struct Cut {
    std::int64_t run_taps = 1;       ///< taps of a run
    std::int64_t steps = 0;          ///< of a run
    std::int64_t steps_at_once = 0;  ///< of a run
    std::int64_t taps_at_once = 1;   ///< whole runs
  };
  /// A block of rows of dst for one panel of filters and one block of channels.
  struct Slab;

  [[nodiscard]] std::int64_t panel_count() const;
  [[nodiscard]] int panel_vectors(std::int64_t panel) const;
  [[nodiscard]] std::int64_t panel_offset(std::int64_t group, std::int64_t panel) const;
  [[nodiscard]] std::int64_t thread_floats() const;
  void pack_panel(const float* weights, float* to, std::int64_t group, std::int64_t panel) const;
  void run_unit(const Arguments& arguments, Rows& rows, const Unit& unit, Range panels, Fetch ahead,
                float* memory) const;
  [[nodiscard]] std::int64_t fetch_step(std::int64_t floats, const Unit& unit, Range panels) const;
  [[nodiscard]] std::int64_t row_tiles(std::int64_t pixels) const;
  void run_slab(const Slab& slab, const Rows& rows, const Unit& unit) const;
  /// True if a run covers all taps along w with their channels.
  [[nodiscard]] bool whole_rows() const;
  [[nodiscard]] Cut cut(std::int64_t in) const;
  [[nodiscard]] std::int64_t find_runs(const Slab& slab, const Rows& rows, std::int64_t d, std::int64_t h,
                                       std::int64_t w) const;
  void run_row(const Slab& slab, TileCall call, std::int64_t pixels) const;
  [[nodiscard]] bool can_slide() const;
  void finish_row(const Slab& slab, float* dst, std::int64_t pixels) const;

  Correlation correlation_;
  Epilogue epilogue_;
  Tiles tiles_;
  int threads_;
  Blocks blocks_;
  RowPlan rows_;
  int vectors_ = 1;
  std::int64_t out_vectors_ = 1;
  std::int64_t in_block_ = 1;
  std::int64_t panel_splits_ = 1;
  bool slide_ = false;
  bool stream_ = false;
  bool weights_in_place_ = false;
  bool dst_in_place_ = true;
};

}  // namespace orthant::kernels::direct
