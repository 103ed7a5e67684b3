#pragma once

#include "orthant/model/task.hpp"

namespace orthant::test {

/// Layouts that follow another argument's unless they are given.
inline const tensor::Layout& given_or(const tensor::Layout& layout, const tensor::Layout& otherwise) {
  return tensor::is_given(layout) ? layout : otherwise;
}
inline const tensor::Layout& residual_layout(const model::NormTask& task) {
  return given_or(task.residual_layout, task.y);
}
inline const tensor::Layout& y_layout(const model::ActivationTask& task) { return given_or(task.y, task.dst); }
inline const tensor::Layout& diff_dst_layout(const model::SoftmaxTask& task) {
  return given_or(task.diff_dst, task.dst);
}
template <class NormOrSums>
const tensor::Layout& y_layout(const NormOrSums& task) {
  return given_or(task.y, task.x);
}
template <class NormOrSums>
const tensor::Layout& diff_y_layout(const NormOrSums& task) {
  return given_or(task.diff_y, y_layout(task));
}
template <class NormOrSums>
const tensor::Layout& diff_y2_layout(const NormOrSums& task) {
  return given_or(task.diff_y2, y_layout(task));
}
inline const tensor::Layout& diff_x_layout(const model::NormTask& task) { return given_or(task.diff_x, task.x); }
inline const tensor::Layout& diff_residual_layout(const model::NormSumsTask& task) {
  return given_or(task.diff_residual, y_layout(task));
}

}  // namespace orthant::test
