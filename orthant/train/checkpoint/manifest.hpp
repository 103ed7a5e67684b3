#pragma once

#include "orthant/engine/parameter_order.hpp"
#include "orthant/train/scores.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace orthant::train::checkpoint {

/// Where a run stands after a step, apart from its tensors. There is no random state: every random number is a function
/// of the seed, the step and its place.
struct State {
  std::string run;  ///< tells runs apart: a checkpoint of another run is never taken for one of this
  std::string network;
  std::int64_t step = 0, epoch = 0;
  std::int64_t samples = 0, mini_batch = 0;  ///< of an epoch; step x mini-batch is the place in the stream of samples
  std::uint64_t seed = 0;
  std::string optimizer;
  double learning_rate = 0;  ///< of the last step
  std::optional<Scores> validation, best;
  std::int64_t best_step = 0;
  std::vector<std::int64_t> left_out;  ///< steps whose update was dropped because of numbers that are not finite
  // What `--resume exact` compares.
  std::string settings;  ///< the run file with its overrides, but for where it writes
  std::string plan;      ///< as it was run, with its kernels
  int ranks = 1, threads = 1;
  std::string program;
};

/// A file of a checkpoint, and the CRC-32C of each block of it.
struct File {
  static constexpr std::int64_t block_bytes = 1 << 20;
  std::string name;
  std::int64_t bytes = 0;
  std::vector<std::uint32_t> blocks;
};

/// A box of a tensor: float32 in the order of files, somewhere in a file.
struct Piece {
  int file = 0;
  std::int64_t offset = 0;
  std::uint32_t crc32c = 0;
  engine::ParameterBox box;
};

/// A parameter, whose parts are its value, the numbers that the optimizer keeps for it, and the running statistics of
/// ranks that have some of their own.
struct Tensor {
  std::vector<std::int64_t> extents;
  std::map<std::string, std::vector<Piece>> parts;
};

/// What a checkpoint holds. It says nothing of ranks: boxes of whole tensors lie in files.
struct Manifest {
  static constexpr int version = 1;
  State state;
  std::vector<File> files;
  std::map<std::string, Tensor> tensors;
};

/// The part of a parameter that every checkpoint has.
inline constexpr const char* value_part = "value";
/// The running statistics of a group of ranks that compute their own; `rank` is the first of them.
std::string rank_part(int rank);
bool is_rank_part(const std::string& part);

/// JSON that ends with its own checksum.
std::string to_json(const Manifest& manifest);
/// Throws Error if a bit of it is wrong, if it is of a later version, if pieces do not cover tensors exactly once or do
/// not lie in their files.
Manifest from_json(const std::string& text, const std::string& origin);

/// What one rank has written, for the rank that writes the manifest.
struct Written {
  std::vector<File> files;  ///< none, or the one that all pieces are in
  std::map<std::string, Tensor> tensors;
};
std::string to_json(const Written& written);
/// Adds the text of one rank.
void add(Manifest& manifest, const std::string& written, const std::string& origin);

}  // namespace orthant::train::checkpoint
