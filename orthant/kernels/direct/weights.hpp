#pragma once

#include "orthant/kernels/direct/rows.hpp"
#include "orthant/kernels/direct/tiles.hpp"

namespace orthant::kernels::direct {

/// The gradient of the weights and of the bias. Every thread of a team calls prepare(), run() and reduce() with a
/// barrier between them. The order of all sums depends on the number of threads only.
class WeightsKernel {
 public:
  struct Arguments {
    const float* src = nullptr;
    const float* diff_dst = nullptr;
    float* diff_weights = nullptr;
    float* diff_bias = nullptr;
    float* scratch = nullptr;
  };

  /// With `accumulate` gradients are added to what they hold.
  WeightsKernel(Correlation correlation, bool bias, bool accumulate, int threads);

  [[nodiscard]] std::int64_t scratch_floats() const;
  /// "outer14x2": weight rows x vectors of the widest register tile, and what is divided among the threads.
  [[nodiscard]] std::string variant() const;
  void prepare(const Arguments& arguments, int thread) const;
  void run(const Arguments& arguments, int thread) const;
  void reduce(const Arguments& arguments, int thread) const;

 private:
  /// The diff_dst of one unit.
  struct Diff {
    const float* base = nullptr;
    std::int64_t d = 0, h = 0, w = 0;  ///< floats from output to output
  };
  /// What the next unit reads, and how much of it is fetched per pixel and register tile of this unit.
  struct Ahead {
    Fetch src, diff;
  };
  /// One thread's memory.
  struct Memory {
    float* rows = nullptr;
    float* diff = nullptr;
    RowPair* pairs = nullptr;
  };

  [[nodiscard]] std::int64_t weights_floats() const;
  [[nodiscard]] std::int64_t channels() const { return correlation_.groups * correlation_.out; }
  [[nodiscard]] std::int64_t partial_floats() const;
  [[nodiscard]] std::int64_t thread_floats() const;
  [[nodiscard]] std::int64_t run_count() const;
  [[nodiscard]] std::int64_t run_length() const;
  [[nodiscard]] float* partial(const Arguments& arguments, int thread) const;
  [[nodiscard]] Memory memory(const Arguments& arguments, int thread) const;
  [[nodiscard]] Diff load_diff(const Arguments& arguments, const Unit& unit, float* memory) const;
  [[nodiscard]] Ahead look_ahead(const Arguments& arguments, const Rows& rows, const Unit& next, const Memory& memory,
                                 std::int64_t tiles) const;
  void run_unit(const Rows& rows, const Diff& diff, const Unit& unit, Range items, const Memory& memory, float* weights,
                const Ahead& ahead) const;
  void run_tile(WeightTileFunction function, WeightTileCall call, std::int64_t rows) const;
  [[nodiscard]] std::int64_t find_pairs(const Rows& rows, const Diff& diff, const Unit& unit, const Tap& d,
                                        const Tap& h, RowPair* pairs) const;
  [[nodiscard]] bool can_stack() const;
  void sum_bias(const Diff& diff, const Unit& unit, float* sums) const;

  Correlation correlation_;
  bool bias_, accumulate_;
  WeightTiles tiles_;
  int threads_;
  Blocks blocks_;
  RowPlan rows_;
  int vectors_ = 1;
  std::int64_t panels_ = 1;   ///< of `vectors_` vectors of filters
  std::int64_t chunks_ = 1;   ///< register tiles per run
  std::int64_t items_ = 1;    ///< register tiles per group
  bool share_pixels_ = true;  ///< threads divide the pixels and add up partial gradients; else they divide the weights
  bool slide_ = false;        ///< a register tile has all taps along w of some channels
  std::int64_t stack_ = 1;    ///< taps along h in a register tile
  bool diff_in_place_ = true;
  bool stream_ = false;  ///< write around the cache: every tile of weights is written once
};

}  // namespace orthant::kernels::direct
