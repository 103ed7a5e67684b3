#include "orthant/base/checked.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/data.hpp"
#include "orthant/cli/make_progress.hpp"
#include "orthant/cli/parallel.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/data/generate/organ_files.hpp"
#include "orthant/engine/memory.hpp"

#include <chrono>
#include <limits>
#include <memory>
#include <optional>

namespace orthant::cli {
namespace {

using base::Exit;
using base::fail;
using base::Json;

struct MakeOrgansArguments {
  data::generate::OrganSet set;
  std::string type = "float";
  ParallelArguments parallel;
  bool json = false;
};

data::generate::OrganSet set_of(const MakeOrgansArguments& arguments) {
  data::generate::OrganSet set = arguments.set;
  set.type = arguments.type == "float" ? data::arrays::NumberType::f32 : data::arrays::NumberType::i16;
  return set;
}

/// For so many ranks on this machine.
void check_memory_for(const data::generate::OrganSet& set, int ranks) {
  const std::int64_t bytes = base::checked_mul(data::generate::volume_bytes(set), ranks);
  const std::int64_t available = engine::available_memory_bytes();
  if (bytes > available) {
    fail(Exit::does_not_fit, "volumes of {}³ voxels need {} but {} are available; use a smaller --size",
         set.settings.size, bytes_text(bytes), bytes_text(available));
  }
}

/// Each rank makes whole volumes, one after the other; all ranks work on as many planes at the same time.
void make_volumes(comm::Comm& comm, const data::generate::OrganSet& set, int threads) {
  MakeProgress progress(comm, "volume", set.volumes, data::generate::steps_of_volume(set.settings));
  for (std::int64_t first = 0; first < set.volumes; first += comm.size()) {
    const std::int64_t sample = first + comm.rank();
    std::optional<data::generate::OrganFile> file;
    comm::agree(comm, [&] {
      if (sample < set.volumes) file.emplace(set, sample, threads);
    });
    for (std::int64_t step = 0; step < data::generate::steps_of_volume(set.settings); ++step) {
      comm::agree(comm, [&] {
        if (file) file->step();
      });
      progress.step(std::min<std::int64_t>(comm.size(), set.volumes - first));
    }
  }
}

void run_make_organs(const MakeOrgansArguments& arguments, comm::Comm& comm) {
  const int threads = threads_per_rank(arguments.parallel);
  const data::generate::OrganSet set = set_of(arguments);
  comm::agree(comm, [&] { check_memory_for(set, arguments.parallel.share.ranks); });
  comm::on_root(comm, [&] {
    data::io::check_directory(set.set_directory());
    if (!arguments.json) {
      fmt::print("volumes     {} of {}³ voxels, {} classes\n", with_commas(set.volumes), set.settings.size,
                 set.settings.classes);
      fmt::print("disk        {}\n", bytes_text(set.set_directory().bytes));
      std::fflush(stdout);
    }
    data::io::make_directory(set.set_directory());
  });
  const auto start = std::chrono::steady_clock::now();
  make_volumes(comm, set, threads);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (comm.rank() != 0) return;
  if (arguments.json) {
    const Json result{{"directory", set.directory},      {"volumes", set.volumes},    {"size", set.settings.size},
                      {"classes", set.settings.classes}, {"seed", set.settings.seed}, {"seconds", seconds}};
    fmt::print("{}\n", result.dump(2));
  } else {
    fmt::print("done        {} volume{} in '{}', {:.1f} s\n", with_commas(set.volumes), set.volumes == 1 ? "" : "s",
               set.directory, seconds);
  }
}

void add_options(CLI::App& command, MakeOrgansArguments& arguments) {
  data::generate::OrganSet& set = arguments.set;
  command.add_option("directory", set.directory, "Where the files go; must be new or empty")->required();
  command.add_option("--size", set.settings.size, "Voxels along each side")
      ->check(CLI::Range(8, 4096))
      ->capture_default_str();
  command.add_option("--samples", set.volumes, "Volumes")->check(CLI::Range(1, 1'000'000))->capture_default_str();
  command.add_option("--classes", set.settings.classes, "Surroundings, kinds of organs, and lesions if more than 2")
      ->check(CLI::Range(2, 8))
      ->capture_default_str();
  command.add_option("--seed", set.settings.seed, "Another seed, other volumes")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
  command.add_option("--type", arguments.type, "float, or int16 (1024 for brightness 1)")
      ->check(CLI::IsMember({"float", "int16"}))
      ->capture_default_str();
  command.add_option("--gzip", set.gzip, "Compress with this level; slower to read")->check(CLI::Range(1, 9));
  command.add_flag("--overwrite", set.overwrite, "Replace the volumes that are in the directory");
  add_ranks(command, arguments.parallel);
  command.add_flag("--json", arguments.json, "Print JSON");
}

}  // namespace

void add_make_organs(CLI::App& make) {
  CLI::App* command = make.add_subcommand("organs", "Organs with lesions, and the class of every voxel");
  const auto arguments = std::make_shared<MakeOrgansArguments>();
  add_options(*command, *arguments);
  command->callback([arguments] {
    run_on_ranks(
        arguments->parallel,
        [&](int ranks) {
          const data::generate::OrganSet set = set_of(*arguments);
          if (!names_hosts(arguments->parallel)) check_memory_for(set, ranks);
          data::io::check_directory(set.set_directory());
        },
        [&](comm::Comm& comm) { run_make_organs(*arguments, comm); });
  });
}

}  // namespace orthant::cli
