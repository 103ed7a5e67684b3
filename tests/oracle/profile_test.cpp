#include "orthant/oracle/profile.hpp"

#include "orthant/base/format.hpp"
#include "orthant/model/zoo.hpp"
#include "orthant/oracle/prices.hpp"
#include "orthant/plan/plan.hpp"
#include "orthant/schedule/schedule.hpp"
#include "tests/plan/message.hpp"

#include <gtest/gtest.h>

namespace orthant::oracle {
namespace {

using plan::message_of;

Profile every_field_differs() {
  Profile profile{.name = "mine", .source = "a \"test\"", .processor = "Xeon", .ranks_per_machine = 3};
  profile.threads_per_rank = 5;
  profile.memory_bytes = (std::int64_t{1} << 53) + 1;
  profile.process_bytes = 77;
  profile.shares_memory = false;
  profile.poll_seconds = 1.0 / 3;
  profile.pace_error = 0.1;
  profile.machine_source = "counted";
  profile.file_bytes_per_second = 1e9 / 7;
  profile.store_bytes_per_second = 2e9 / 7;
  profile.samples_source = "guessed";
  profile.inside = {1e-6 / 3, 4e10 / 3, 2e-7, 3e-11, 4e-11, 4096, true, 0.15, "ping"};
  profile.between = {1e-5 / 3, 4e9 / 3, 2e-6, 3e-10, 4e-10, 65536, false, 0.25, "pong"};
  profile.curves = {{"conv 3d", 0.1, 80, 0.4, "fitted"}, {"dense", 0.2, 0, 0.5, "assumed"}};
  Setting setting{.threads = 2, .ranks_per_machine = 4, .flops_per_second = 1e11 / 3};
  setting.memory_bytes_per_second = 1e10 / 3;
  setting.step_seconds = 1e-6 / 7;
  setting.source = "measured";
  profile.settings = {setting, setting};
  for (const char* key : {"direct conv 1", "winograd \"conv\" 2"})
    profile.settings[1].tasks[key] = {
        {"conv 3d", 1e9 / 3, 1e6 / 3, {1, 2, 3, 4, 5, 1.0 / 0.3}}, 1e-3 / 7, 0.01 / 3, 64};
  return profile;
}

TEST(Profile, ReadsExactlyWhatItWrote) {
  const std::string text = to_json(every_field_differs());
  const Profile read = profile_from_json(text, "profile.json");

  EXPECT_EQ(to_json(read), text);
  EXPECT_EQ(read.memory_bytes, (std::int64_t{1} << 53) + 1);
  EXPECT_EQ(read.poll_seconds, 1.0 / 3);
  EXPECT_EQ(read.between.bytes_per_second, 4e9 / 3);
  EXPECT_FALSE(read.shares_memory);
  EXPECT_TRUE(read.inside.moves_alone);
  EXPECT_EQ(read.curves.at(1).source, "assumed");
  EXPECT_TRUE(read.settings.at(0).tasks.empty());
  const MeasuredTask& task = read.settings.at(1).tasks.at("winograd \"conv\" 2");
  EXPECT_EQ(task.seconds, 1e-3 / 7);
  EXPECT_EQ(task.features.family, "conv 3d");
  EXPECT_EQ(task.features.extents, (std::vector<double>{1, 2, 3, 4, 5, 1.0 / 0.3}));
}

TEST(Profile, HasOneLineForEachTask) {
  const std::string text = to_json(every_field_differs());

  const std::size_t begin = text.find(R"({"task":"direct conv 1")");
  ASSERT_NE(begin, std::string::npos);
  EXPECT_EQ(text.find(R"({"task":"winograd)"), text.find('\n', begin) + 9);
}

/// The message about a profile in which `from` is replaced by `to`.
std::string damaged(const std::string& from, const std::string& to) {
  std::string text = to_json(every_field_differs());
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  text.replace(place, from.size(), to);
  return message_of([&] { (void)profile_from_json(text, "p.json"); });
}

TEST(Profile, ForeignFilesAreRefused) {
  const auto error = [](const char* text) { return message_of([&] { (void)profile_from_json(text, "p.json"); }); };
  const char* foreign = "p.json: not a machine profile; one is JSON with \"format\": \"orthant-profile\"";
  for (const char* text : {"{}", "[]", "3", R"({"format": "orthant-plan"})"}) EXPECT_EQ(error(text), foreign);
  EXPECT_TRUE(error("PK\x03\x04").starts_with("p.json: not JSON: "));
  EXPECT_EQ(damaged("\"version\": 1", "\"version\": 2"),
            "p.json: profile version 2 is not known here; this program reads version 1");
  EXPECT_EQ(damaged("\"version\": 1,", ""), "p.json: 'version' is missing");
}

TEST(Profile, MissingAndUnknownKeysAreNamed) {
  EXPECT_EQ(damaged("\"name\": \"mine\",", ""), "p.json: 'name' is missing");
  EXPECT_EQ(damaged("\"poll_seconds\"", "\"pol_seconds\""),
            "p.json: machine: unknown key 'pol_seconds'; did you mean 'poll_seconds'?");
  EXPECT_EQ(damaged("\"pace_error\": 0.1,", ""), "p.json: machine: 'pace_error' is missing");
  EXPECT_EQ(damaged("\"step_seconds\": 1.4285714285714285e-07,", ""), "p.json: setting 1: 'step_seconds' is missing");
  EXPECT_EQ(damaged("\"moves_alone\": false,", ""), "p.json: between: 'moves_alone' is missing");
  EXPECT_EQ(damaged("\"source\": \"fitted\"", "\"sauce\": 1"),
            "p.json: curve 1: unknown key 'sauce'; did you mean 'source'?");
  EXPECT_EQ(damaged(R"("error":0.0033333333333333335,)", ""), "p.json: setting 2: task 1: 'error' is missing");
  EXPECT_EQ(damaged("winograd \\\"conv\\\" 2", "direct conv 1"),
            "p.json: setting 2: task 2: 'direct conv 1' is there already");
}

TEST(Profile, FiguresThatNoMachineHasAreRefused) {
  const std::string rate = "\"bytes_per_second\": 1333333333.3333333";
  for (const char* bad : {"-1.0", "0", "1e+30", "\"fast\"", "null", "true", "[1]"}) {
    EXPECT_EQ(damaged(rate, std::string("\"bytes_per_second\": ") + bad),
              fmt::format("p.json: between: 'bytes_per_second' is {}; it must be a number from 1 to 1e+18", bad));
  }
  for (const char* bad : {"NaN", "Infinity", "1e999"})
    EXPECT_TRUE(damaged(rate, std::string("\"bytes_per_second\": ") + bad).starts_with("p.json: not JSON: ")) << bad;
  EXPECT_EQ(damaged("\"memory_bytes\": 9007199254740993", "\"memory_bytes\": 0"),
            "p.json: machine: 'memory_bytes' is 0; it must be a whole number from 1 to 1152921504606846976");
  EXPECT_EQ(damaged("\"ranks_per_machine\": 3", "\"ranks_per_machine\": 2.5"),
            "p.json: machine: 'ranks_per_machine' is 2.5; it must be a whole number from 1 to 65536");
  EXPECT_EQ(damaged("\"shares_memory\": false", "\"shares_memory\": 0"),
            "p.json: machine: 'shares_memory' is 0; it must be true or false");
  EXPECT_EQ(damaged(R"("extents":[1.0,)", R"("extents":[0,)"),
            "p.json: setting 2: task 1: 'extents' must be numbers from 1 to 1e+24");
  EXPECT_EQ(damaged(R"("source": "ping")", R"("source": 7)"), "p.json: inside: 'source' is 7; it must be a text");
  Profile none = every_field_differs();
  none.settings.clear();
  EXPECT_EQ(message_of([&] { (void)profile_from_json(to_json(none), "p.json"); }),
            "p.json: 'settings' is empty; there must be one");
}

TEST(Profile, ShippedOnesSayWhereEveryFigureIsFrom) {
  EXPECT_EQ(shipped_profile_names(), (std::vector<std::string>{"abci-v100", "lassen-v100", "cpu-cluster"}));
  for (const std::string& name : shipped_profile_names()) {
    const Profile profile = shipped_profile(name);
    EXPECT_EQ(profile.name, name);
    std::vector<std::string> sources{profile.source, profile.machine_source, profile.samples_source,
                                     profile.inside.source, profile.between.source};
    for (const EfficiencyCurve& curve : profile.curves) sources.push_back(curve.source);
    for (const Setting& setting : profile.settings) sources.push_back(setting.source);
    for (const std::string& source : sources) EXPECT_GE(source.size(), 40U) << name;
  }
  EXPECT_EQ(message_of([] { (void)shipped_profile("abci-v10"); }),
            "no profile 'abci-v10' comes with the program; did you mean 'abci-v100'?");
}

/// Seconds per sample of one rank whose tasks are priced by a shipped profile.
double seconds_per_sample(const Profile& profile, const char* network, const tensor::Shape& input) {
  const model::Graph graph = model::make_zoo(network, {.input = input});
  const Prices prices(profile, profile.threads_per_rank, profile.ranks_per_machine);
  double seconds = 0;
  for (const schedule::Step& step : schedule::lower(graph, plan::serial_plan(graph), 0, {}).steps) {
    if (const auto* task = std::get_if<model::Task>(&step.work)) seconds += prices.of(*task).seconds;
  }
  return seconds / static_cast<double>(input.n);
}

TEST(Profile, CurvesOfAV100GiveThePublishedSecondsPerSample) {
  for (const char* name : {"abci-v100", "lassen-v100"}) {
    const Profile profile = shipped_profile(name);
    const auto expect = [&](double published, const char* network, const tensor::Shape& input) {
      EXPECT_NEAR(seconds_per_sample(profile, network, input) / published, 1, 0.1) << name << " " << network;
    };
    expect(0.003120, "resnet50", {.n = 32, .c = 3, .h = 224, .w = 224});
    expect(0.008246, "vgg16", {.n = 32, .c = 3, .h = 224, .w = 224});
    expect(0.2635, "cosmoflow", {.c = 4, .d = 256, .h = 256, .w = 256});
    expect(2.108, "cosmoflow", {.c = 4, .d = 512, .h = 512, .w = 512});
  }
}

}  // namespace
}  // namespace orthant::oracle
