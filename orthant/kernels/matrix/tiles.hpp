#pragma once

#include <array>
#include <cstdint>

namespace orthant::kernels::matrix {

/// c[m][n] = sum over k of a[m][k] * b[k][n] for a few rows m and one panel of columns n.
struct TileCall {
  const float* a = nullptr;
  std::int64_t a_row = 0;    ///< from m to m + 1
  std::int64_t a_step = 1;   ///< from k to k + 1
  const float* b = nullptr;  ///< one panel per k, side by side
  std::int64_t depth = 0;    ///< how many k
  float* c = nullptr;
  std::int64_t c_row = 0;
  std::int64_t columns = 0;     ///< of the panel that exist
  const float* bias = nullptr;  ///< a whole panel; read with `last`, null without
  float slope = 1;              ///< with `last`: what negative values are multiplied by
  bool first = true;            ///< otherwise adds to what c holds
  bool last = true;
  bool stream = false;           ///< write around the cache; rows of c are whole aligned vectors
  const float* ahead = nullptr;  ///< what the next call reads: one cache line is fetched per k
  std::int64_t ahead_step = 16;  ///< from line to line of a run
  std::int64_t ahead_row = 0;    ///< from one run of lines to the next
  std::int64_t ahead_lines = 1;  ///< lines of a run
};

inline constexpr int most_rows = 14;
using TileFunction = void (*)(const TileCall&);

/// The register tiles of this machine's instruction set; entry r - 1 takes r rows.
struct Tiles {
  int panel = 1;      ///< columns of a panel
  int most_rows = 1;  ///< what the register file holds
  std::array<TileFunction, matrix::most_rows> rows{};
  /// The same for long sums: runs of `ahead_lines` k are summed up one by one and then added. Rounding errors grow with
  /// the length of a run, and hardly with the number of runs.
  std::array<TileFunction, matrix::most_rows> rows_by_runs{};
};

const Tiles& tiles();

/// What some calls fetch ahead, as TileCall says it, instead of the rows of the next one.
struct Ahead {
  std::int64_t calls = 0;
  const float* from = nullptr;
  std::int64_t next = 0;  ///< from call to call
  std::int64_t step = 0, row = 0, lines = 1;
};

/// Multiplies `rows` rows of a, by nearly equal tiles: a short last one would be slow.
void multiply_rows(TileCall call, std::int64_t rows, Ahead ahead = {});

/// Cuts a matrix [depth][columns] into panels of `panel` columns, zero beyond `columns`: the order that tiles read.
struct PackCall {
  const float* from = nullptr;
  std::int64_t step = 0;  ///< from k to k + 1; when transposed from column to column
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  float* to = nullptr;
  std::int64_t panel = 0;
  std::int64_t panel_step = 0;  ///< from panel to panel
};
void pack(const PackCall& call);
/// From a matrix [columns][depth], at most one panel.
void pack_transposed(const PackCall& call);

}  // namespace orthant::kernels::matrix
