#include "orthant/base/json.hpp"
#include "orthant/cli/plan_report.hpp"

namespace orthant::cli {
namespace {

using base::Json;
using oracle::Prediction;

Json parts_json(const std::array<double, oracle::part_count>& parts) {
  Json json = Json::object();
  for (std::size_t i = 0; i < oracle::part_count; ++i) json[oracle::name_of(static_cast<oracle::Part>(i))] = parts[i];
  return json;
}

Json memory_json(const oracle::Memory& memory) {
  return {{"total", memory.total()},       {"arena", memory.arena_bytes}, {"weights", memory.weights},
          {"gradients", memory.gradients}, {"state", memory.state},       {"activations", memory.activations},
          {"halos", memory.halos},         {"messages", memory.messages}, {"workspace", memory.workspace},
          {"samples", memory.samples},     {"process", memory.process}};
}

Json prediction_json(const Prediction& prediction) {
  return {{"seconds", prediction.seconds},
          {"error", prediction.error},
          {"parts_seconds", parts_json(prediction.parts)},
          {"exposed_seconds", prediction.exposed_seconds},
          {"hidden_seconds", prediction.hidden_seconds},
          {"flops", prediction.flops},
          {"bytes_sent", prediction.sent.bytes},
          {"messages_sent", prediction.sent.messages},
          {"memory_bytes", memory_json(prediction.memory)},
          {"kernels_known",
           {{"measured", prediction.known[0]}, {"interpolated", prediction.known[1]}, {"curve", prediction.known[2]}}},
          {"limited_by", oracle::bottleneck(prediction)},
          {"classes", prediction.classes},
          {"lower_seconds", prediction.lower_seconds},
          {"price_seconds", prediction.price_seconds}};
}

Json candidate_json(const planner::Candidate& one, const planner::Planned& planned, int ranks) {
  Json json{{"name", one.name}, {"fits", one.fits}};
  if (!one.refused.empty()) {
    json["refused"] = one.refused;
    return json;
  }
  json.update(prediction_json(one.prediction));
  if (planned.serial) {
    json["speed_up"] = planned.serial->seconds / one.prediction.seconds;
    json["efficiency"] = planned.serial->seconds / one.prediction.seconds / ranks;
  }
  return json;
}

Json layers_json(const Prediction& prediction) {
  Json layers = Json::array();
  for (const oracle::LayerTime& layer : prediction.layers)
    layers.push_back({{"name", layer.name},
                      {"compute_seconds", layer.compute_seconds},
                      {"waiting_seconds", layer.waiting_seconds},
                      {"parts_seconds", parts_json(layer.parts)}});
  return layers;
}

Json what_if_json(const planner::WhatIf& one) {
  Json json{{"question", one.question},
            {"ranks", one.options.ranks},
            {"mini_batch", one.mini_batch},
            {"name", one.best.name},
            {"fits", one.best.fits}};
  if (!one.best.refused.empty()) {
    json["refused"] = one.best.refused;
  } else {
    json["seconds"] = one.best.prediction.seconds;
    json["error"] = one.best.prediction.error;
  }
  return json;
}

}  // namespace

Json to_json(const Question& question, const Answer& answer) {
  const planner::Planned& planned = answer.planned;
  const int ranks = question.options.ranks;
  Json json{{"network", question.graph.name},
            {"mini_batch", question.mini_batch()},
            {"ranks", ranks},
            {"machine", question.profile.name},
            {"found", planned.found()}};
  if (planned.serial) json["serial"] = prediction_json(*planned.serial);
  json["strategies"] = Json::array();
  for (const planner::Candidate& one : planned.strategies)
    json["strategies"].push_back(candidate_json(one, planned, ranks));
  json["best"] = candidate_json(planned.best, planned, ranks);
  json["best"]["layers"] = layers_json(planned.best.prediction);
  if (planned.found()) json["best"]["plan"] = Json::parse(plan::to_json(planned.best.plan));
  if (question.samples > 0 && planned.found()) {
    const std::int64_t steps = (question.samples + question.mini_batch() - 1) / question.mini_batch();
    json["epoch_seconds"] = static_cast<double>(steps) * planned.best.prediction.seconds;
  }
  json["search"] = {{"exact", planned.search.exact},
                    {"bound_seconds", planned.search.bound_seconds},
                    {"cuts", planned.search.cuts},
                    {"predicted", planned.search.predicted}};
  if (!planned.reason.empty()) json["reason"] = planned.reason;
  if (!planned.advice.empty()) json["advice"] = planned.advice;
  json["held_back_by"] = answer.remedies;
  if (answer.useful)
    json["useful_ranks"] = {{"ranks", answer.useful->ranks},
                            {"seconds", answer.useful->seconds},
                            {"strategy", answer.useful->strategy},
                            {"limit", answer.useful->limit}};
  json["what_ifs"] = Json::array();
  for (const planner::WhatIf& one : answer.what_ifs) json["what_ifs"].push_back(what_if_json(one));
  return json;
}

}  // namespace orthant::cli
