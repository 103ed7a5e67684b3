#include "orthant/model/onnx/importer.hpp"

namespace orthant::model::onnx {

std::optional<View> Importer::moved(const View&) { return std::nullopt; }

}  // namespace orthant::model::onnx
