#include "orthant/oracle/predict.hpp"

#include "orthant/model/network.hpp"
#include "orthant/plan/strategy.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace orthant::oracle {
namespace {

model::Graph cosmoflow(std::int64_t samples) {
  return model::load_network("cosmoflow", {.input = "4x32x32x32", .mini_batch = samples});
}
model::Graph resnet(std::int64_t samples) {
  return model::load_network("resnet18", {.input = "3x64x64", .mini_batch = samples});
}

/// So many gigabytes a second between ranks that are alone on their machines.
Profile machine(double gigabytes_per_second, double latency_seconds = 1e-6) {
  Profile profile{.name = "test", .memory_bytes = std::int64_t{16} << 30, .shares_memory = false};
  profile.settings.push_back({.flops_per_second = 1e12, .memory_bytes_per_second = 1e11, .step_seconds = 1e-6});
  profile.between = {
      .latency_seconds = latency_seconds, .bytes_per_second = gigabytes_per_second * 1e9, .moves_alone = true};
  profile.inside = profile.between;
  return profile;
}

plan::Plan grid(const model::Graph& graph, const char* text) { return plan::make_plan(graph, plan::parse_grid(text)); }

double compute_seconds(const model::Graph& graph, const plan::Plan& plan, int rank, const Profile& profile) {
  const Prices prices(profile, 1, 1);
  schedule::LowerOptions options{.optimizer = StepOptions{}.optimizer};
  double seconds = 0;
  for (const schedule::Step& step : schedule::lower(graph, plan, rank, options).steps)
    if (const auto* task = std::get_if<model::Task>(&step.work)) seconds += prices.of(*task).seconds;
  return seconds;
}

TEST(Predict, OneRankTakesTheSumOfItsSteps) {
  const model::Graph graph = cosmoflow(2);
  const Profile profile = machine(1);

  const Prediction prediction = predict(graph, plan::serial_plan(graph), profile, {});

  EXPECT_NEAR(prediction.seconds, compute_seconds(graph, plan::serial_plan(graph), 0, profile), 1e-9);
  EXPECT_EQ(prediction.exposed_seconds, 0);
}

TEST(Predict, MessagesThatCostNothingChangeNothing) {
  const model::Graph graph = resnet(8);
  const Profile profile = machine(1e9, 0);
  for (const char* text : {"n4", "h2w2", "f2", "n2c2"}) {
    const plan::Plan plan = grid(graph, text);
    double slowest = 0;
    for (int rank = 0; rank < plan.ranks; ++rank)
      slowest = std::max(slowest, compute_seconds(graph, plan, rank, profile));
    // Ranks with different work wait for each other layer by layer.
    const double seconds = predict(graph, plan, profile, {}).seconds;
    EXPECT_GE(seconds, slowest * 0.999) << text;
    EXPECT_LE(seconds, slowest * 1.2) << text;
  }
}

TEST(Predict, ASlowNetworkIsAllThatCounts) {
  const model::Graph graph = resnet(8);
  const Profile profile = machine(1e-3);
  const plan::Plan plan = grid(graph, "n2");
  const Prediction prediction = predict(graph, plan, profile, {});

  const double wire = static_cast<double>(prediction.sent.bytes) / 1e6;
  EXPECT_GE(prediction.seconds, wire);
  EXPECT_LE(prediction.seconds, wire + compute_seconds(graph, plan, 0, profile) + 0.01);
  EXPECT_GT(prediction.exposed_seconds, 0.9 * wire);
}

TEST(Predict, MoreBandwidthIsNeverSlower) {
  const model::Graph graph = cosmoflow(4);
  for (const char* text : {"n4", "d2h2", "n2d2", "f4", "c4", "n2f2", "p2"}) {
    const plan::Plan plan = grid(graph, text);
    double before = 1e30;
    for (const double bandwidth : {0.01, 0.1, 1.0, 10.0, 100.0}) {
      const double seconds = predict(graph, plan, machine(bandwidth), {}).seconds;
      EXPECT_LE(seconds, before * 1.001) << text << " at " << bandwidth << " GB/s";
      before = seconds;
    }
  }
}

TEST(Predict, PartsAddUp) {
  const model::Graph graph = resnet(8);
  for (const char* text : {"1", "n4", "h4", "f4", "c2f2", "p2", "n2p2"}) {
    const Prediction prediction = predict(graph, grid(graph, text), machine(1), {});
    const double sum = std::accumulate(prediction.parts.begin(), prediction.parts.end(), 0.0);
    EXPECT_NEAR(sum, prediction.seconds, 1e-9 + 1e-6 * prediction.seconds) << text;
    EXPECT_GT(prediction.error, 0);
    EXPECT_LE(prediction.exposed_seconds, prediction.seconds);
  }
}

TEST(Predict, MemoryIsTheArenaThatTheScheduleTakes) {
  const model::Graph graph = resnet(8);
  Profile profile = machine(1);
  profile.process_bytes = 1000;
  for (const char* text : {"1", "n4", "h2w2", "f4", "p2"}) {
    const plan::Plan plan = grid(graph, text);
    std::int64_t largest = 0;
    schedule::LowerOptions options{.optimizer = StepOptions{}.optimizer, .shares_memory = false};
    options.needs.scratch_bytes = [](const model::Task&) { return 0; };
    for (int rank = 0; rank < plan.ranks; ++rank)
      largest = std::max(largest, schedule::place(schedule::lower(graph, plan, rank, options)).arena_bytes);

    const Prediction prediction = predict(graph, plan, profile, {});

    EXPECT_EQ(prediction.memory.arena_bytes, largest) << text;
    EXPECT_EQ(prediction.memory.total(), largest + 1000) << text;
    EXPECT_GE(prediction.memory.activations, 0) << text;
  }
}

TEST(Predict, WhatDoesNotFitIsSaid) {
  const model::Graph graph = resnet(8);
  Profile profile = machine(1);
  profile.memory_bytes = 50 << 20;

  EXPECT_FALSE(predict(graph, plan::serial_plan(graph), profile, {}).fits);
}

TEST(Predict, ClassesTakeTheTimeOfAllTheirMembers) {
  const model::Graph volumes = cosmoflow(4);
  const model::Graph images = resnet(32);
  Profile profile = machine(5, 1e-5);
  profile.ranks_per_machine = 4;
  const std::vector<std::pair<const model::Graph*, const char*>> cases{
      {&volumes, "d4h2w2"}, {&volumes, "n4d4"}, {&volumes, "n2d3h2"}, {&images, "n16"},
      {&images, "n4h4"},    {&images, "n8f4"},  {&images, "n12"},     {&images, "n4p4"}};
  for (const auto& [graph, text] : cases) {
    const plan::Plan plan = grid(*graph, text);
    const double all = predict(*graph, plan, profile, {.follow_all_up_to = 64}).seconds;
    const Prediction classes = predict(*graph, plan, profile, {.follow_all_up_to = 1});
    EXPECT_NEAR(classes.seconds, all, 0.05 * all) << text;
    EXPECT_EQ(classes.forced, 0) << text;
  }
}

TEST(Predict, AStageWaitsForTheOneBeforeIt) {
  const model::Graph graph = resnet(8);
  const Prediction prediction = predict(graph, grid(graph, "p2"), machine(100), {});

  EXPECT_GT(prediction.parts[static_cast<std::size_t>(Part::bubble)], 0);
}

TEST(Predict, TimelinesAreInOrder) {
  const model::Graph graph = resnet(4);
  const Prediction prediction = predict(graph, grid(graph, "h2w2"), machine(1), {.keep_timeline = true});

  ASSERT_EQ(prediction.timelines.size(), 4U);
  for (const Timeline& timeline : prediction.timelines) {
    double before = 0;
    for (const TimelineEvent& event : timeline.events) {
      EXPECT_GE(event.begin, before - 1e-12);
      EXPECT_GE(event.end, event.begin);
      before = event.end;
    }
    EXPECT_LE(before, prediction.seconds + 1e-12);
  }
}

}  // namespace
}  // namespace orthant::oracle
