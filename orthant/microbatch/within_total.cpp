#include "orthant/base/error.hpp"
#include "orthant/microbatch/divide.hpp"

#include <glpk.h>

#include <memory>

namespace orthant::microbatch {
namespace {

struct Deleter {
  void operator()(glp_prob* problem) const { glp_delete_prob(problem); }
};
using Problem = std::unique_ptr<glp_prob, Deleter>;

/// The sums of the least workspaces and of the largest useful ones.
struct Need {
  std::int64_t least = 0, most = 0;
};

std::optional<Need> need_of(std::span<const std::vector<Division>> fronts) {
  Need need;
  for (const std::vector<Division>& front : fronts) {
    if (front.empty()) return std::nullopt;
    need.least += front.front().workspace_bytes;
    need.most += front.back().workspace_bytes;
  }
  return need;
}

/// Items of the sparse matrix, counted from 1 as GLPK does.
struct Matrix {
  std::vector<int> rows{0}, columns{0};
  std::vector<double> values{0};
  void add(int row, int column, double value) {
    rows.push_back(row);
    columns.push_back(column);
    values.push_back(value);
  }
};

/// A binary variable for every division of every kernel, of which one is 1; row 1 is the workspace, row k + 2 kernel k.
/// Workspace is counted beyond the least of each kernel, and in units of what there is of it, which keeps numbers near
/// one; so are times.
Problem make_problem(std::span<const std::vector<Division>> fronts, std::int64_t spare_bytes) {
  Problem problem(glp_create_prob());
  glp_set_obj_dir(problem.get(), GLP_MIN);
  glp_add_rows(problem.get(), static_cast<int>(fronts.size()) + 1);
  glp_set_row_bnds(problem.get(), 1, GLP_UP, 0, 1);
  double gain = 0;
  for (const auto& front : fronts) gain += front.front().seconds - front.back().seconds;
  Matrix matrix;
  int column = 0;
  for (std::size_t k = 0; k < fronts.size(); ++k) {
    const int row = static_cast<int>(k) + 2;
    glp_set_row_bnds(problem.get(), row, GLP_FX, 1, 1);
    glp_add_cols(problem.get(), static_cast<int>(fronts[k].size()));
    for (const Division& division : fronts[k]) {
      glp_set_col_kind(problem.get(), ++column, GLP_BV);
      glp_set_obj_coef(problem.get(), column, (division.seconds - fronts[k].back().seconds) / gain);
      const std::int64_t extra = division.workspace_bytes - fronts[k].front().workspace_bytes;
      if (extra > 0) matrix.add(1, column, static_cast<double>(extra) / static_cast<double>(spare_bytes));
      matrix.add(row, column, 1);
    }
  }
  glp_load_matrix(problem.get(), static_cast<int>(matrix.values.size()) - 1, matrix.rows.data(), matrix.columns.data(),
                  matrix.values.data());
  return problem;
}

/// The relaxation first, then branch and bound from there. GLPK's presolver ends the program on some problems.
void solve(glp_prob* problem) {
  glp_smcp relaxed;
  glp_init_smcp(&relaxed);
  relaxed.msg_lev = GLP_MSG_OFF;
  glp_iocp whole;
  glp_init_iocp(&whole);
  whole.msg_lev = GLP_MSG_OFF;
  const int error = glp_simplex(problem, &relaxed);
  const int second_error = error == 0 ? glp_intopt(problem, &whole) : error;
  if (second_error != 0 || glp_mip_status(problem) != GLP_OPT)
    base::fail(base::Exit::internal, "workspace division: GLPK left with error {}, status {}", second_error,
               glp_mip_status(problem));
}

std::vector<std::size_t> solution(glp_prob* problem, std::span<const std::vector<Division>> fronts) {
  std::vector<std::size_t> chosen;
  int column = 0;
  for (const auto& front : fronts) {
    chosen.push_back(0);
    for (std::size_t i = 0; i < front.size(); ++i) {
      if (glp_mip_col_val(problem, ++column) > 0.5) chosen.back() = i;
    }
  }
  return chosen;
}

std::int64_t bytes_of(std::span<const std::vector<Division>> fronts, const std::vector<std::size_t>& chosen) {
  std::int64_t bytes = 0;
  for (std::size_t k = 0; k < fronts.size(); ++k) bytes += fronts[k][chosen[k]].workspace_bytes;
  return bytes;
}

}  // namespace

std::optional<std::vector<std::size_t>> within_total(std::span<const std::vector<Division>> fronts,
                                                     std::int64_t total_bytes) {
  const std::optional<Need> need = need_of(fronts);
  if (!need || need->least > total_bytes) return std::nullopt;
  std::vector<std::size_t> chosen(fronts.size(), 0);
  if (need->most <= total_bytes) {
    for (std::size_t k = 0; k < fronts.size(); ++k) chosen[k] = fronts[k].size() - 1;
    return chosen;
  }
  // GLPK computes with rounding, so that a solution may be some bytes above the total.
  for (std::int64_t spare = total_bytes - need->least; spare > 0;) {
    const Problem problem = make_problem(fronts, spare);
    solve(problem.get());
    std::vector<std::size_t> found = solution(problem.get(), fronts);
    const std::int64_t excess = bytes_of(fronts, found) - total_bytes;
    if (excess <= 0) return found;
    spare -= excess;
  }
  return chosen;
}

}  // namespace orthant::microbatch
