#include "orthant/train/scores_text.hpp"

#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"

namespace orthant::train {
namespace {

using base::Json;

Json or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }

Json channels_json(const Scores& scores) {
  Json channels = Json::array();
  for (const ValueScore& channel : scores.channels) {
    channels.push_back({{"mean_squared_error", channel.mean_squared_error},
                        {"mean_absolute_error", channel.mean_absolute_error},
                        {"target_mean", channel.target_mean},
                        {"target_variance", channel.target_variance},
                        {"explained", or_null(channel.explained())}});
  }
  return channels;
}

}  // namespace

std::string to_text(const Scores& scores) {
  if (scores.labels)
    return fmt::format("loss {:.5g}  mean Dice {:.4f}  accuracy {:.4f}", scores.loss, scores.mean_dice,
                       scores.accuracy);
  return fmt::format("loss {:.5g}  MSE {:.5g}  MAE {:.5g}", scores.loss, scores.mean_squared_error,
                     scores.mean_absolute_error);
}

Json to_json(const Scores& scores) {
  Json json{{"samples", scores.samples}, {"loss", scores.loss}};
  if (!scores.labels) {
    json["mean_squared_error"] = scores.mean_squared_error;
    json["mean_absolute_error"] = scores.mean_absolute_error;
    json["channels"] = channels_json(scores);
    return json;
  }
  json["accuracy"] = scores.accuracy;
  json["mean_dice"] = scores.mean_dice;
  json["dice"] = Json::array();
  for (const std::optional<double>& dice : scores.dice) json["dice"].push_back(or_null(dice));
  return json;
}

std::string csv_header(const Scores& scores) {
  std::string header = scores.labels ? "loss,accuracy,mean_dice" : "loss,mean_squared_error,mean_absolute_error";
  for (std::size_t i = 0; i < scores.dice.size(); ++i) header += fmt::format(",dice_{}", i);
  for (std::size_t i = 0; i < scores.channels.size(); ++i) header += fmt::format(",mse_{},mae_{}", i, i);
  return header;
}

std::string csv_row(const Scores& scores) {
  std::string row = scores.labels
                        ? fmt::format("{},{},{}", scores.loss, scores.accuracy, scores.mean_dice)
                        : fmt::format("{},{},{}", scores.loss, scores.mean_squared_error, scores.mean_absolute_error);
  for (const std::optional<double>& dice : scores.dice) row += dice ? fmt::format(",{}", *dice) : ",";
  for (const ValueScore& channel : scores.channels)
    row += fmt::format(",{},{}", channel.mean_squared_error, channel.mean_absolute_error);
  return row;
}

}  // namespace orthant::train
