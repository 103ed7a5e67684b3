#pragma once

#include "orthant/base/input_file.hpp"
#include "orthant/model/onnx/file.hpp"

#include <map>
#include <string>

namespace orthant::model::onnx {

/// Where the bytes of a tensor lie that is kept in a file beside `model`. `entries` are what the tensor says of it.
/// Throws Error (65) for places outside of the model's folder, and if the file does not have `wanted` bytes there.
Bytes external_bytes(const std::string& model, const std::string& tensor,
                     const std::map<std::string, std::string>& entries, std::int64_t wanted);

/// Opens the file that holds the bytes. An external one is reached without following any link.
base::InputFile open_bytes(const Bytes& bytes);

}  // namespace orthant::model::onnx
