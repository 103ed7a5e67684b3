#include "orthant/train/checkpoint/restore.hpp"

#include "orthant/base/random.hpp"
#include "orthant/train/checkpoint/writer.hpp"
#include "tests/train/resumed_runs.hpp"

#include <cstdlib>
#include <mutex>

namespace orthant::train::checkpoint {
namespace {

using base::Exit;
using test::expect_error;

constexpr model::Optimizer adam{.kind = model::OptimizerKind::adam};

struct Cut {
  const char* grid;
  int ranks;
};
constexpr std::array cuts{Cut{"n1", 1},   Cut{"n2", 2},   Cut{"d2", 2},   Cut{"f2", 2},
                          Cut{"p2", 2},   Cut{"f3", 3},   Cut{"n2d2", 4}, Cut{"n4", 4},
                          Cut{"d2h2", 4}, Cut{"n2f2", 4}, Cut{"n2f3", 6}, Cut{"n2d2h2", 8}};

/// Runs `body` on sessions of a plan, whose weights are unset.
void on_ranks(const model::Graph& graph, const Cut& cut, const std::function<void(engine::Session&)>& body) {
  const plan::Plan plan = plan::make_plan(graph, {.grid = cut.grid}, cut.ranks);
  const auto run = [&](comm::Comm& comm) {
    engine::Session session(graph, plan, comm, {.lowering = {.optimizer = adam}});
    body(session);
  };
  cut.ranks == 1 ? run(test::alone()) : test::run_threads(cut.ranks, run);
}

State state_of(const engine::Session& session, std::int64_t step) {
  return {.run = "r",
          .network = session.graph().name,
          .step = step,
          .samples = 8,
          .mini_batch = 2,
          .optimizer = "adam",
          .settings = "a: 1\n",
          .plan = plan::to_json(session.plan()),
          .ranks = session.comm().size(),
          .threads = 1,
          .program = "p"};
}

/// Weights, state and running statistics that nobody could mistake for each other: functions of tensor, part and item.
void fill(engine::Session& session, std::uint64_t seed) {
  std::uint64_t key = seed;
  for (const schedule::ParameterBuffers& entry : session.schedule().parameters) {
    key = base::keyed(key, 1);
    std::vector<float> whole(static_cast<std::size_t>(model::count(entry.parameter)));
    const auto values = [&](std::uint64_t part) {
      for (std::size_t i = 0; i < whole.size(); ++i)
        whole[i] = static_cast<float>(base::uniform(base::keyed(key, part), i));
    };
    if (entry.value < 0) continue;
    values(0);
    session.set_parameter(entry, whole);
    for (std::size_t s = 0; s < entry.state.size(); ++s) {
      values(1 + s);
      const auto first = static_cast<std::size_t>(entry.state[s].offset_bytes) / sizeof(float);
      engine::to_kernel_order(session.graph(), entry.parameter, entry.shard, entry.updated, whole,
                              session.engine()
                                  .floats(entry.state[s].buffer)
                                  .subspan(first, static_cast<std::size_t>(entry.updated.hi - entry.updated.lo)));
    }
  }
}

/// Everything a rank has, as it would be with fill().
std::vector<float> contents(engine::Session& session) {
  std::vector<float> all;
  for (const schedule::ParameterBuffers& entry : session.schedule().parameters) {
    if (entry.value < 0) continue;
    const std::span<float> values = session.engine().floats(entry.value);
    all.insert(all.end(), values.begin(), values.end());
    for (const schedule::Piece& piece : entry.state) {
      const auto items = session.engine()
                             .floats(piece.buffer)
                             .subspan(static_cast<std::size_t>(piece.offset_bytes) / sizeof(float),
                                      static_cast<std::size_t>(entry.updated.hi - entry.updated.lo));
      all.insert(all.end(), items.begin(), items.end());
    }
  }
  return all;
}

void write(engine::Session& session, const std::string& directory, std::int64_t step) {
  Writer writer(session, adam, 10);
  writer.set_directory(directory);
  writer.begin(state_of(session, step), "");
  const auto outcome = writer.finish();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->error, "");
}

TEST(Restore, EveryPlanReadsWhatEveryOtherHasWritten) {
  const test::TemporaryDirectory folder;
  const model::Graph graph = test::small_graph(4);
  for (const Cut& from : cuts) {
    const std::string directory = folder.file(from.grid);
    std::filesystem::create_directories(directory);
    on_ranks(graph, from, [&](engine::Session& session) {
      fill(session, 7);
      write(session, directory, 5);
    });
  }
  for (const Cut& to : cuts) {
    on_ranks(graph, to, [&](engine::Session& session) {
      fill(session, 7);
      const std::vector<float> expected = contents(session);
      for (const Cut& from : cuts) {
        fill(session, 8);
        EXPECT_NE(contents(session), expected);
        const auto found = find(Directory(folder.file(from.grid)), Choice::newest_good, session.comm());
        load(session, adam, Directory(folder.file(from.grid)), found->manifest);
        EXPECT_EQ(contents(session), expected) << from.grid << " read by " << to.grid;
      }
    });
  }
}

/// A run directory with checkpoints of steps 1 and 2 that two ranks have written.
class Damaged : public testing::Test {
 protected:
  Damaged() : graph_(test::small_graph(4)) {
    for (const std::int64_t step : {1, 2}) {
      on_ranks(graph_, {"n2", 2}, [&](engine::Session& session) {
        fill(session, static_cast<std::uint64_t>(step));
        write(session, folder_.file("."), step);
      });
    }
    for (const auto& entry : std::filesystem::directory_iterator(of(2)))
      good_[entry.path().filename().string()] = data::io::read_text(entry.path().string());
  }

  [[nodiscard]] std::string of(std::int64_t step) const { return Directory(folder_.file(".")).of(step); }

  /// The checkpoint of step 2 is skipped, and the reason contains `text`; then it is as it was.
  void expect_skipped(const std::string& text) {
    const auto found = find(Directory(folder_.file(".")), Choice::newest_good, test::alone());
    ASSERT_TRUE(found);
    EXPECT_EQ(found->step, 1) << text;
    ASSERT_EQ(found->skipped.size(), 1U);
    EXPECT_NE(found->skipped[0].reason.find(text), std::string::npos) << found->skipped[0].reason;
    std::filesystem::remove_all(of(2));
    std::filesystem::create_directories(of(2));
    for (const auto& [name, bytes] : good_) put(name, bytes);
  }
  void put(const std::string& name, const std::string& bytes) const {
    std::ofstream(of(2) + "/" + name, std::ios::binary) << bytes;
  }

  test::TemporaryDirectory folder_;
  model::Graph graph_;
  std::map<std::string, std::string> good_;
};

TEST_F(Damaged, GoodOnesAreTaken) {
  EXPECT_EQ(find(Directory(folder_.file(".")), Choice::exact, test::alone())->step, 2);
}

/// Files as they come from bad disks: a bit that is wrong, a block of zeros, an end that is missing. `factor` times as
/// many as `make test` has time for.
std::vector<std::string> damaged(const std::string& bytes, std::size_t factor) {
  const auto every = [&](std::size_t distance) { return std::max<std::size_t>(1, distance / factor); };
  std::vector<std::string> all{bytes + "x"};
  for (std::size_t i = 0; i < bytes.size(); i += every(9)) {
    all.push_back(bytes);
    all.back()[i] = static_cast<char>(bytes[i] ^ (1 << (i / every(9)) % 8));
  }
  for (std::size_t i = 0; i < bytes.size(); i += every(101)) all.push_back(bytes.substr(0, i));
  for (std::size_t i = 0; i < bytes.size(); i += every(203)) {
    std::string bad = bytes;
    const std::size_t count = std::min<std::size_t>(64, bytes.size() - i);
    bad.replace(i, count, count, '\0');
    if (bad != bytes) all.push_back(std::move(bad));
  }
  return all;
}

TEST_F(Damaged, EveryDamageIsFound) {
  const char* text = std::getenv("ORTHANT_TEST_FACTOR");
  const int factor = text == nullptr ? 1 : std::atoi(text);
  int count = 0;
  for (const auto& [name, bytes] : good_) {
    for (const std::string& bad : damaged(bytes, static_cast<std::size_t>(factor))) {
      put(name, bad);
      expect_skipped(name);
      ++count;
    }
    std::filesystem::remove(of(2) + "/" + name);
    expect_skipped(name);
    ++count;
  }
  EXPECT_GT(count, 1000 * factor);
  fmt::print("{} damaged checkpoints\n", count);
}

TEST_F(Damaged, FilesOfOtherStepsAndRanksAreFound) {
  for (const auto& entry : std::filesystem::directory_iterator(of(1))) {
    const std::string name = entry.path().filename().string();
    put(name, data::io::read_text(entry.path().string()));
    expect_skipped(name == "manifest.json" ? "is the manifest of step 1" : name);
  }
  put("shard-00000.safetensors", good_.at("shard-00001.safetensors"));
  expect_skipped("shard-00000.safetensors");
}

/// A manifest whose checksum is right but whose contents make no sense.
void expect_refused(const std::string& text, const std::function<void(Manifest&)>& change, const Manifest& good) {
  Manifest bad = good;
  change(bad);
  expect_error(Exit::bad_data, text, [&] { from_json(to_json(bad), "m"); });
}

TEST_F(Damaged, ManifestsThatMakeNoSenseAreRefused) {
  const Manifest good = Directory(folder_.file(".")).read(2);
  EXPECT_EQ(to_json(from_json(to_json(good), "m")), to_json(good));
  const auto piece = [](Manifest& manifest) -> Piece& {
    return manifest.tensors.at("conv1.weight").parts.at("value").at(0);
  };
  expect_refused(
      "overlap",
      [](Manifest& m) {
        auto& pieces = m.tensors.at("conv1.weight").parts.at("value");
        pieces.push_back(pieces.front());
      },
      good);
  expect_refused(
      "items", [](Manifest& m) { m.tensors.at("conv1.weight").parts.at("value").pop_back(); }, good);
  expect_refused(
      "is outside of the tensor", [&](Manifest& m) { piece(m).box.first.hi += 1000; }, good);
  expect_refused(
      "ends after the", [&](Manifest& m) { piece(m).offset = std::int64_t{1} << 62; }, good);
  expect_refused(
      "is in file", [&](Manifest& m) { piece(m).file = 77; }, good);
  expect_refused(
      "is no name for a file", [](Manifest& m) { m.files[0].name = "../../etc"; }, good);
  expect_refused(
      "blocks cannot make up", [](Manifest& m) { m.files[0].bytes = std::int64_t{1} << 60; }, good);
  expect_refused(
      "its extents make no sense", [](Manifest& m) { m.tensors.at("conv1.weight").extents = {}; }, good);
  expect_refused(
      "overflows 64 bits",
      [](Manifest& m) {
        m.tensors.at("conv1.weight").extents = {std::int64_t{1} << 40, std::int64_t{1} << 40};
      },
      good);
  expect_refused(
      "it has no value", [](Manifest& m) { m.tensors.at("conv1.weight").parts.erase("value"); }, good);
}

TEST(Restore, NothingIsSavedThatIsNotFinite) {
  const test::TemporaryDirectory folder;
  const model::Graph graph = test::small_graph(4);
  on_ranks(graph, {"n2", 2}, [&](engine::Session& session) {
    fill(session, 1);
    Writer writer(session, adam, 2);
    writer.set_directory(folder.file("."));
    if (session.comm().rank() == 1) {
      const auto& entry = session.schedule().parameters.at(0);
      session.engine().floats(entry.state.empty() ? entry.value : entry.state.at(0).buffer)[0] = NAN;
      for (const auto& other : session.schedule().parameters)
        for (const auto& state : other.state) session.engine().floats(state.buffer)[0] = NAN;
    }
    writer.begin(state_of(session, 3), "");
    const auto outcome = writer.finish();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->code, Exit::non_finite);
    EXPECT_NE(outcome->error.find("on rank 1"), std::string::npos) << outcome->error;
  });
  EXPECT_TRUE(Directory(folder.file(".")).steps().empty());
  EXPECT_TRUE(Directory(folder.file(".")).remains().empty());
}

}  // namespace
}  // namespace orthant::train::checkpoint
