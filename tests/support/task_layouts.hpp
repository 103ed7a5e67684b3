#pragma once

#include "orthant/model/task.hpp"

namespace orthant::test {

/// Layouts of a NormTask that follow x or y unless they are given.
inline const tensor::Layout& given_or(const tensor::Layout& layout, const tensor::Layout& otherwise) {
  return layout == tensor::Layout{} ? otherwise : layout;
}
inline const tensor::Layout& residual_layout(const model::NormTask& task) {
  return given_or(task.residual_layout, task.y);
}
inline const tensor::Layout& diff_y_layout(const model::NormTask& task) { return given_or(task.diff_y, task.y); }
inline const tensor::Layout& diff_y2_layout(const model::NormTask& task) { return given_or(task.diff_y2, task.y); }
inline const tensor::Layout& diff_x_layout(const model::NormTask& task) { return given_or(task.diff_x, task.x); }
inline const tensor::Layout& diff_residual_layout(const model::NormTask& task) {
  return given_or(task.diff_residual, task.y);
}

}  // namespace orthant::test
