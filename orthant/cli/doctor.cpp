#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/commands.hpp"
#include "orthant/cli/table.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/engine/memory.hpp"
#include "orthant/kernels/machine.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

namespace orthant::cli {
namespace {

using base::Json;

/// The result of one check.
struct Finding {
  enum class Verdict { well, note, problem };
  std::string what, value;
  Verdict verdict = Verdict::well;
  std::string remedy;
};
using Verdict = Finding::Verdict;

/// The word in brackets of a line like "always [madvise] never".
std::string huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  std::getline(file, line);
  const std::size_t open = line.find('[');
  const std::size_t close = line.find(']');
  return open == std::string::npos || close == std::string::npos ? "unknown" : line.substr(open + 1, close - open - 1);
}

Finding check_kernels(const kernels::Machine& machine) {
  const bool wide = machine.simd_target == "avx3" || machine.simd_target == "avx2";
  return {"own kernels", machine.simd_target, wide ? Verdict::well : Verdict::note,
          wide ? "" : "the processor has no AVX2: everything works, several times slower than on one that has it"};
}

Finding check_threads(const kernels::Machine& machine) {
  const char* limit = std::getenv("OMP_NUM_THREADS");
  Finding finding{"processors", std::to_string(machine.processors), Verdict::well, ""};
  if (limit != nullptr) finding.value += fmt::format(" (OMP_NUM_THREADS={})", limit);
  if (machine.threads_may_shrink) {
    finding.verdict = Verdict::problem;
    finding.remedy =
        "OMP_DYNAMIC lets the team of threads shrink, and oneDNN can then wait for ever: unset OMP_DYNAMIC";
  }
  return finding;
}

Finding check_memory() {
  const std::int64_t total = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  const std::int64_t available = engine::available_memory_bytes();
  const bool enough = available >= std::int64_t{1} << 30;
  return {"memory", fmt::format("{} available of {}", bytes_text(available), bytes_text(total)),
          enough ? Verdict::well : Verdict::problem,
          enough ? "" : "less than 1 GiB is available: end other programs, or raise the limit of the control group"};
}

Finding check_huge_pages() {
  const std::string mode = huge_pages();
  const bool usable = mode == "always" || mode == "madvise";
  return {"huge pages", mode, usable ? Verdict::well : Verdict::note,
          usable ? ""
                 : "large samples run some percent slower: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
}

Finding check_disk() {
  std::error_code error;
  const auto space = std::filesystem::space(".", error);
  if (error) return {"disk", "unknown", Verdict::note, "the current directory cannot be read: change to another"};
  const bool writable = access(".", W_OK) == 0;
  const bool enough = space.available >= std::uintmax_t{1} << 30U;
  Finding finding{"disk", bytes_text(static_cast<std::int64_t>(space.available)) + " free here", Verdict::well, ""};
  if (!writable)
    finding = {"disk", "not writable here", Verdict::note,
               "runs cannot be written here: change the directory, or set output= elsewhere"};
  if (writable && !enough)
    finding = {"disk", finding.value, Verdict::note, "little room for weights and logs: set output= to another disk"};
  return finding;
}

std::vector<Finding> examine() {
  const kernels::Machine machine = kernels::describe_machine();
  utsname system{};
  uname(&system);
  return {{"orthant", fmt::format("{} (compiler {})", ORTHANT_VERSION, __VERSION__), Verdict::well, ""},
          {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine), Verdict::well, ""},
          {"processor", machine.processor, Verdict::well, ""},
          check_threads(machine),
          check_kernels(machine),
          {"oneDNN", fmt::format("{} for {}", machine.onednn_version, machine.onednn_isa), Verdict::well, ""},
          {"Highway", machine.highway_version, Verdict::well, ""},
          {"OpenMP", machine.openmp_version, Verdict::well, ""},
          check_memory(),
          check_huge_pages(),
          check_disk()};
}

const char* word(Verdict verdict) {
  switch (verdict) {
    case Verdict::well: return "ok";
    case Verdict::note: return "note";
    case Verdict::problem: break;
  }
  return "problem";
}

void print_table(const std::vector<Finding>& findings) {
  Table table({{"", Table::Align::left}, {"found", Table::Align::left}, {"", Table::Align::left}});
  for (const Finding& finding : findings) table.add({finding.what, finding.value, word(finding.verdict)});
  fmt::print("{}", table.text());
  for (const Finding& finding : findings) {
    if (finding.verdict != Verdict::well)
      fmt::print("\n{}: {}: {}\n", word(finding.verdict), finding.what, finding.remedy);
  }
}

void print_json(const std::vector<Finding>& findings) {
  Json all = Json::array();
  for (const Finding& finding : findings) {
    all.push_back({{"what", finding.what},
                   {"found", finding.value},
                   {"verdict", word(finding.verdict)},
                   {"remedy", finding.remedy}});
  }
  fmt::print("{}\n", Json{{"findings", all}}.dump(2));
}

void run_doctor(bool json) {
  const std::vector<Finding> findings = examine();
  json ? print_json(findings) : print_table(findings);
  for (const Finding& finding : findings) {
    if (finding.verdict == Verdict::problem)
      base::fail(base::Exit::does_not_fit, "{}: {}", finding.what, finding.remedy);
  }
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* command = app.add_subcommand("doctor", "What is installed, what is wrong, how to mend it");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->callback([json] { run_doctor(*json); });
}

}  // namespace orthant::cli
