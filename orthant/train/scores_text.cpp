#include "orthant/train/scores_text.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/base/json_fields.hpp"

#include <limits>

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

Scores scores_from_json(const Json& json, const std::string& origin) {
  constexpr double most = std::numeric_limits<double>::max();
  const base::JsonFields fields(json, origin);
  Scores scores{.samples = fields.whole("samples", std::int64_t{0}, std::numeric_limits<std::int64_t>::max()),
                .loss = fields.real("loss", -most, most),
                .labels = fields.has("dice")};
  if (!scores.labels) {
    scores.mean_squared_error = fields.real("mean_squared_error", 0, most);
    scores.mean_absolute_error = fields.real("mean_absolute_error", 0, most);
    for (const Json& item : fields.list("channels")) {
      const base::JsonFields channel(item, origin);
      scores.channels.push_back({.mean_squared_error = channel.real("mean_squared_error", 0, most),
                                 .mean_absolute_error = channel.real("mean_absolute_error", 0, most),
                                 .target_mean = channel.real("target_mean", -most, most),
                                 .target_variance = channel.real("target_variance", 0, most)});
    }
    return scores;
  }
  scores.accuracy = fields.real("accuracy", 0, 1);
  scores.mean_dice = fields.real("mean_dice", 0, 1);
  for (const Json& item : fields.list("dice")) {
    if (!item.is_null() && !item.is_number())
      base::fail(base::Exit::bad_data, "{}: 'dice' holds {}", origin, item.dump());
    scores.dice.push_back(item.is_null() ? std::nullopt : std::optional(item.get<double>()));
  }
  return scores;
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
