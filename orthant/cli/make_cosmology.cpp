#include "orthant/base/checked.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/cli/data.hpp"
#include "orthant/cli/make_progress.hpp"
#include "orthant/cli/parallel.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/data/generate/universe_files.hpp"
#include "orthant/engine/memory.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

namespace orthant::cli {
namespace {

using base::Exit;
using base::fail;
using base::Json;

struct MakeCosmologyArguments {
  data::generate::UniverseSet set;
  double box = 0;  ///< 0: as many Mpc/h as cells
  std::string type = "int16", spectrum = data::generate::transfer_names().front();
  ParallelArguments parallel;
  bool json = false;
};

/// The set that the arguments ask for. Throws Error for settings that make no sense.
data::generate::UniverseSet set_of(const MakeCosmologyArguments& arguments) {
  data::generate::UniverseSet set = arguments.set;
  set.settings.box = arguments.box > 0 ? arguments.box : static_cast<double>(set.settings.size);
  set.settings.type = arguments.type == "float" ? data::arrays::NumberType::f32 : data::arrays::NumberType::i16;
  const std::vector<std::string>& names = data::generate::transfer_names();
  const auto found = std::find(names.begin(), names.end(), arguments.spectrum);
  if (found == names.end()) {
    fail(Exit::usage, "--spectrum: unknown '{}'{}", arguments.spectrum, base::suggestion(arguments.spectrum, names));
  }
  set.settings.transfer = static_cast<data::generate::TransferKind>(found - names.begin());
  data::generate::check_set(set);
  return set;
}

/// The memory of all ranks together.
std::int64_t memory_of(const data::generate::UniverseSet& set, int ranks, int threads) {
  const std::int64_t each = data::generate::universe_bytes(set.settings, ranks, threads);
  return base::checked_add(base::checked_mul(each, ranks), data::generate::writing_bytes(set));
}

void check_ranks(const data::generate::UniverseSet& set, int ranks) {
  if (ranks > set.settings.size) {
    fail(Exit::does_not_fit, "{} ranks cannot share {} planes; use at most --ranks {}", ranks, set.settings.size,
         set.settings.size);
  }
}

/// For `here` of the ranks on this machine.
void check_memory_for(const data::generate::UniverseSet& set, int ranks, int here, int threads) {
  const std::int64_t each = data::generate::universe_bytes(set.settings, ranks, threads);
  const std::int64_t bytes = base::checked_add(base::checked_mul(each, here), data::generate::writing_bytes(set));
  const std::int64_t available = engine::available_memory_bytes();
  if (bytes > available) {
    fail(Exit::does_not_fit, "universes of {}³ cells need {} but {} are available; use a smaller --size",
         set.settings.size, bytes_text(bytes), bytes_text(available));
  }
}

void print_plan(const data::generate::UniverseSet& set, int ranks, int threads) {
  const data::generate::UniverseSettings& settings = set.settings;
  fmt::print("universes   {} of {}³ cells, {:g} Mpc/h, z = {:g}, in {} file{}\n", with_commas(set.universes),
             settings.size, settings.box, fmt::join(settings.redshifts, ", "), with_commas(set.files()),
             set.files() == 1 ? "" : "s");
  fmt::print("disk        {}\n", bytes_text(set.set_directory().bytes));
  fmt::print("memory      {} at most, {} rank{} of {} thread{}\n", bytes_text(memory_of(set, ranks, threads)), ranks,
             ranks == 1 ? "" : "s", threads, threads == 1 ? "" : "s");
  std::fflush(stdout);
}

Json result_of(const data::generate::UniverseSet& set, double seconds, std::int64_t predicted_bytes,
               std::int64_t measured_bytes) {
  return {{"directory", set.directory},
          {"universes", set.universes},
          {"files", set.files()},
          {"size", set.settings.size},
          {"cube", set.cube()},
          {"box_mpc_per_h", set.settings.box},
          {"redshifts", set.settings.redshifts},
          {"seed", set.settings.seed},
          {"seconds", seconds},
          {"predicted_bytes", predicted_bytes},
          {"peak_rss_bytes", measured_bytes}};
}

void run_make_cosmology(const MakeCosmologyArguments& arguments, comm::Comm& comm) {
  const int threads = threads_per_rank(arguments.parallel);
  const data::generate::UniverseSet set = comm::agree(comm, [&] { return set_of(arguments); });
  comm::agree(comm, [&] {
    check_ranks(set, comm.size());
    check_memory_for(set, comm.size(), arguments.parallel.share.ranks, threads);
  });
  comm::on_root(comm, [&] {
    data::io::check_directory(set.set_directory());
    if (!arguments.json) print_plan(set, comm.size(), threads);
    data::io::make_directory(set.set_directory());
  });
  const auto start = std::chrono::steady_clock::now();
  {
    MakeProgress progress(comm, "universe", set.universes, data::generate::steps_of_universe(set.settings) + 1);
    for (std::int64_t universe = 0; universe < set.universes; ++universe) {
      const data::generate::UniverseParameters parameters =
          data::generate::draw_parameters(set.settings.seed, universe);
      const std::vector<std::byte> planes = data::generate::make_universe(
          comm, set.settings, parameters, universe, {.threads = threads, .after_step = [&] { progress.step(); }});
      data::generate::write_universe(comm, set, parameters, universe, planes);
      progress.step();
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::int64_t peak = comm::sum(comm, engine::peak_memory_bytes());
  if (comm.rank() != 0) return;
  if (arguments.json) {
    fmt::print("{}\n", result_of(set, seconds, memory_of(set, comm.size(), threads), peak).dump(2));
  } else {
    fmt::print("done        {} in '{}', {:.1f} s, peak memory {}\n",
               set.files() == 1 ? "1 file" : with_commas(set.files()) + " files", set.directory, seconds,
               bytes_text(peak));
  }
}

void add_options(CLI::App& command, MakeCosmologyArguments& arguments) {
  data::generate::UniverseSet& set = arguments.set;
  command.add_option("directory", set.directory, "Where the files go; must be new or empty")->required();
  command.add_option("--size", set.settings.size, "Cells along each side, and as many particles")
      ->check(CLI::Range(8, 4096))
      ->capture_default_str();
  command.add_option("--samples", set.universes, "Universes")->check(CLI::Range(1, 1'000'000))->capture_default_str();
  command.add_option("--split", set.split, "Cut each universe into cubes of this side, one file each")
      ->check(CLI::Range(4, 4096));
  command.add_option("--seed", set.settings.seed, "Another seed, other universes")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
  command.add_option("--box", arguments.box, "Side in Mpc/h; as many as cells if not given")
      ->check(CLI::Range(1.0, 1e5));
  command.add_option("--redshifts", set.settings.redshifts, "One channel each, e.g. 3,1.5,0.5,0")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--spectrum", arguments.spectrum, "eisenstein-hu, no-wiggle or bbks")->capture_default_str();
  command
      .add_option("--type", arguments.type,
                  "int16 (64 per particle) or float (particles; the mean is 1 in both per cell)")
      ->check(CLI::IsMember({"int16", "float"}))
      ->capture_default_str();
  command.add_option("--gzip", set.gzip, "Compress with this level; slower to read")->check(CLI::Range(1, 9));
  command.add_flag("--overwrite", set.overwrite, "Replace the universes that are in the directory");
  add_ranks(command, arguments.parallel);
  command.add_flag("--json", arguments.json, "Print JSON");
}

}  // namespace

void add_make_cosmology(CLI::App& make) {
  CLI::App* command =
      make.add_subcommand("cosmology", "Universes from physics, with the parameters they were made with as targets");
  const auto arguments = std::make_shared<MakeCosmologyArguments>();
  add_options(*command, *arguments);
  command->callback([arguments] {
    run_on_ranks(
        arguments->parallel,
        [&](int ranks) {
          const data::generate::UniverseSet set = set_of(*arguments);
          check_ranks(set, ranks);
          if (!names_hosts(arguments->parallel))
            check_memory_for(set, ranks, ranks, threads_per_rank(arguments->parallel, ranks));
          data::io::check_directory(set.set_directory());
        },
        [&](comm::Comm& comm) { run_make_cosmology(*arguments, comm); });
  });
}

}  // namespace orthant::cli
