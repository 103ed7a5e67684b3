#include "fuzz/targets.hpp"

#include "orthant/base/error.hpp"
#include "orthant/data/formats/nifti.hpp"
#include "orthant/data/formats/npy.hpp"
#include "orthant/data/formats/safetensors.hpp"
#include "orthant/data/formats/tfrecord.hpp"
#include "orthant/data/tools/set_check.hpp"
#include "orthant/microbatch/store.hpp"
#include "orthant/model/init.hpp"
#include "orthant/model/onnx/load.hpp"
#include "orthant/model/yaml.hpp"
#include "orthant/model/zoo.hpp"
#include "orthant/oracle/profile.hpp"
#include "orthant/plan/plan.hpp"
#include "orthant/train/run_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

namespace orthant::fuzz {
namespace {

constexpr std::int64_t most_items = 1 << 20;

/// A file without a name that holds these bytes.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      std::abort();
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(descriptor_); }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

void parse_run(const std::string& bytes) {
  const train::RunFile run = train::read_run(model::parse_document(bytes, "run.yaml"), "run.yaml");
  model::to_text(train::to_document(run));
}

void parse_network(const std::string& bytes) { model::to_yaml(model::read_yaml(bytes, "net.yaml", std::nullopt, 2)); }

void parse_plan(const std::string& bytes) {
  static const model::Graph graph =
      model::make_zoo("cosmoflow", {.input = {.n = 4, .c = 4, .d = 32, .h = 32, .w = 32}});
  const plan::Plan plan = plan::from_json(bytes, "plan.json");
  plan::to_json(plan);
  plan::verify(plan, graph);
}

void parse_profile(const std::string& bytes) { to_json(oracle::profile_from_json(bytes, "machine.json")); }

void parse_safetensors(const std::string& bytes) {
  const MemoryFile memory(bytes);
  const data::formats::SafetensorsFile file(memory.path());
  for (const auto& [name, entry] : file.tensors()) {
    std::vector<float> items(static_cast<std::size_t>((entry.end - entry.begin) / bytes_of(entry.type)));
    file.read(name, items);
  }
}

void parse_npy(const std::string& bytes) {
  const MemoryFile memory(bytes);
  const data::formats::NpyFile file(memory.path());
  if (file.items() > most_items || file.items() == 0) return;
  const tensor::Shape shape{.n = file.items(), .c = 1, .d = 1, .h = 1, .w = 1};
  std::vector<float> items(static_cast<std::size_t>(file.items()));
  file.read(tensor::channels_first(shape), tensor::whole(shape), items);
}

void parse_nifti(const std::string& bytes) {
  const MemoryFile memory(bytes);
  data::formats::nifti_values(data::formats::read_nifti(memory.path()), "volume.nii");
}

void parse_tfrecord(const std::string& bytes) {
  const MemoryFile memory(bytes);
  data::formats::read_tfrecord(memory.path());
}

void parse_checksums(const std::string& bytes) { data::tools::parse_checksums(bytes, ".checksums"); }

void parse_onnx(const std::string& bytes) {
  const MemoryFile memory(bytes);
  const model::Graph graph = model::onnx::load(memory.path(), {});
  for (const model::Parameter& parameter : model::parameters(graph)) {
    if (model::count(parameter) > most_items) continue;
    std::vector<float> items(static_cast<std::size_t>(model::count(parameter)));
    model::initialise(graph, parameter, 1, items);
  }
}

void parse_cache(const std::string& bytes) {
  const MemoryFile memory(bytes);
  const microbatch::Store store(memory.path(), "machine");
  if (store.load().size() > bytes.size() || store.trouble().size() > 10 * bytes.size() + 1000) std::abort();
}

}  // namespace

std::span<const Target> targets() {
  static const std::array<Target, 11> all{{{"cache", parse_cache},
                                           {"checksums", parse_checksums},
                                           {"network", parse_network},
                                           {"nifti", parse_nifti},
                                           {"npy", parse_npy},
                                           {"onnx", parse_onnx},
                                           {"plan", parse_plan},
                                           {"profile", parse_profile},
                                           {"run", parse_run},
                                           {"safetensors", parse_safetensors},
                                           {"tfrecord", parse_tfrecord}}};
  return all;
}

void feed(const Target& target, const std::string& bytes) {
  try {
    target.parse(bytes);
  } catch (const base::Error& error) {
    if (error.code() != base::Exit::internal) return;
    std::fprintf(stderr, "%s: an error that is a mistake of the program: %s\n", target.name.c_str(), error.what());
    std::abort();
  }
}

}  // namespace orthant::fuzz
