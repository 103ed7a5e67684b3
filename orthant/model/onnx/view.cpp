#include "orthant/model/onnx/view.hpp"

#include <cassert>

namespace orthant::model::onnx {

using tensor::Dim;

std::vector<Dim> axes_of_rank(int rank) {
  std::vector<Dim> axes{Dim::n, Dim::c};
  for (int i = 5 - rank; i < 3; ++i) axes.push_back(tensor::spatial_dims.at(static_cast<std::size_t>(i)));
  return axes;
}

Atoms whole_axis(const tensor::Shape& shape, Dim axis) {
  if (shape[axis] == 1) return {};
  return {{axis, shape[axis], 1}};
}

View plain_view(int item, const tensor::Shape& shape, int rank) {
  View view{.item = item, .dims = {}};
  for (const Dim axis : axes_of_rank(rank)) view.dims.push_back(whole_axis(shape, axis));
  return view;
}

std::int64_t extent_of(const Atoms& atoms) {
  std::int64_t product = 1;
  for (const Atom& atom : atoms) product *= atom.extent;
  return product;
}

Extents extents_of(const View& view) {
  Extents extents;
  for (const Atoms& atoms : view.dims) extents.push_back(extent_of(atoms));
  return extents;
}

void join(Atoms& atoms) {
  Atoms joined;
  for (const Atom& atom : atoms) {
    const bool continues =
        !joined.empty() && joined.back().axis == atom.axis && joined.back().step == atom.step * atom.extent;
    if (continues) {
      joined.back() = {atom.axis, joined.back().extent * atom.extent, atom.step};
    } else {
      joined.push_back(atom);
    }
  }
  atoms = std::move(joined);
}

std::optional<View> reshaped(const View& view, const Extents& extents) {
  Atoms rest;
  for (const Atoms& atoms : view.dims) rest.insert(rest.end(), atoms.begin(), atoms.end());
  std::size_t next = 0;
  View result{.item = view.item, .dims = {}};
  for (const std::int64_t extent : extents) {
    Atoms taken;
    std::int64_t wanted = extent;
    while (wanted > 1) {
      if (next == rest.size()) return std::nullopt;
      Atom& atom = rest[next];
      if (wanted % atom.extent == 0) {
        taken.push_back(atom);
        wanted /= atom.extent;
        ++next;
      } else if (atom.extent % wanted == 0) {
        const std::int64_t inner = atom.extent / wanted;
        taken.push_back({atom.axis, wanted, atom.step * inner});
        atom.extent = inner;
        wanted = 1;
      } else {
        return std::nullopt;
      }
    }
    join(taken);
    result.dims.push_back(std::move(taken));
  }
  if (next != rest.size()) return std::nullopt;
  return result;
}

View transposed(const View& view, const std::vector<int>& permutation) {
  assert(permutation.size() == view.dims.size());
  View result{.item = view.item, .dims = {}};
  for (const int from : permutation) result.dims.push_back(view.dims.at(static_cast<std::size_t>(from)));
  return result;
}

}  // namespace orthant::model::onnx
