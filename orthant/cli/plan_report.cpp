#include "orthant/cli/plan_report.hpp"

#include "orthant/base/format.hpp"
#include "orthant/cli/table.hpp"
#include "orthant/cli/units.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace orthant::cli {
namespace {

using Align = Table::Align;
using oracle::Prediction;
using planner::Candidate;

std::string time_text(const Prediction& prediction) {
  return fmt::format("{} ±{:.0f} %", seconds_text(prediction.seconds), std::ceil(100 * prediction.error));
}

double share(double seconds, const Prediction& prediction) { return seconds / std::max(1e-12, prediction.seconds); }

std::string row_end(const Candidate& one) {
  if (one.fits) return oracle::bottleneck(one.prediction);
  const std::int64_t needed = one.prediction.memory.total();
  return fmt::format("does not fit: needs {} per rank", bytes_text(needed));
}

std::vector<std::string> row_of(const Candidate& one, const planner::Planned& planned, int ranks) {
  if (!one.refused.empty()) return {one.name, "-", "-", "-", "-", "-", "cannot run"};
  const Prediction& prediction = one.prediction;
  const double speed_up = planned.serial ? planned.serial->seconds / prediction.seconds : 0;
  return {one.name,
          time_text(prediction),
          planned.serial ? fmt::format("{:.2f}", speed_up) : "-",
          planned.serial ? percent_text(speed_up / ranks) : "-",
          bytes_text(prediction.memory.total()),
          percent_text(share(prediction.exposed_seconds, prediction)),
          row_end(one)};
}

std::string strategies_text(const planner::Planned& planned, int ranks) {
  Table table({{"strategy", Align::left},
               {"step"},
               {"speed-up"},
               {"efficiency"},
               {"memory/rank"},
               {"waiting"},
               {"limited by", Align::left}});
  for (const Candidate& one : planned.strategies) table.add(row_of(one, planned, ranks));
  if (!planned.strategies.empty()) table.add_line();
  if (planned.best.refused.empty()) table.add(row_of(planned.best, planned, ranks));
  std::string text = table.text();
  for (const Candidate& one : planned.strategies)
    if (!one.refused.empty()) text += fmt::format("{} cannot run: {}\n", one.name, one.refused);
  return text;
}

std::string parts_text(const Prediction& prediction) {
  std::string text;
  for (std::size_t i = 0; i < oracle::part_count; ++i) {
    if (share(prediction.parts[i], prediction) < 0.0005) continue;
    text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", oracle::name_of(static_cast<oracle::Part>(i)),
                        seconds_text(prediction.parts[i]), percent_text(share(prediction.parts[i], prediction)));
  }
  return text;
}

std::array<std::pair<const char*, std::int64_t>, 9> parts_of(const oracle::Memory& memory) {
  return {{{"weights", memory.weights},
           {"gradients", memory.gradients},
           {"optimizer state", memory.state},
           {"activations", memory.activations},
           {"halos", memory.halos},
           {"messages", memory.messages},
           {"workspace", memory.workspace},
           {"samples", memory.samples},
           {"process", memory.process}}};
}

std::string memory_text(const oracle::Memory& memory) {
  std::string text;
  for (const auto& [name, bytes] : parts_of(memory))
    if (bytes > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, bytes_text(bytes));
  return text;
}

std::string machine_text(const Question& question) {
  const oracle::Profile& profile = question.profile;
  const int room =
      question.options.step.ranks_per_machine > 0 ? question.options.step.ranks_per_machine : profile.ranks_per_machine;
  const int together = std::clamp(room, 1, question.options.ranks);
  const int machines = (question.options.ranks + together - 1) / together;
  return fmt::format("{}, {} machine{} of {} rank{}", profile.name, with_commas(machines), machines == 1 ? "" : "s",
                     together, together == 1 ? "" : "s");
}

std::string what_ifs_text(const std::vector<planner::WhatIf>& answers, const Prediction& now, std::int64_t mini_batch) {
  if (answers.empty()) return "";
  Table table({{"what if", Align::left}, {"step"}, {"samples/s"}, {"change"}, {"plan", Align::left}});
  const double rate = static_cast<double>(mini_batch) / now.seconds;
  for (const planner::WhatIf& one : answers) {
    if (!one.best.refused.empty()) {
      table.add({one.question, "-", "-", "-", "cannot be: " + one.best.refused});
      continue;
    }
    const double its_rate = static_cast<double>(one.mini_batch) / one.best.prediction.seconds;
    table.add({one.question, time_text(one.best.prediction), fmt::format("{:.4g}", its_rate),
               fmt::format("{:+.1f} %", 100 * (its_rate / rate - 1)),
               one.best.name + (one.best.fits ? "" : ", which does not fit")});
  }
  return "\n" + table.text();
}

std::string epoch_text(const Question& question, const Prediction& prediction) {
  if (question.samples == 0) return "";
  const std::int64_t steps = (question.samples + question.mini_batch() - 1) / question.mini_batch();
  return fmt::format("epoch       {} for {} samples in {} steps\n",
                     seconds_text(static_cast<double>(steps) * prediction.seconds), with_commas(question.samples),
                     with_commas(steps));
}

std::string knowledge_text(const Prediction& prediction) {
  return fmt::format("{} of the computing time from measured kernels, {} interpolated, {} from efficiency curves",
                     percent_text(prediction.known[0]), percent_text(prediction.known[1]),
                     percent_text(prediction.known[2]));
}

std::string best_text(const Question& question, const Answer& answer) {
  const planner::Planned& planned = answer.planned;
  const Prediction& prediction = planned.best.prediction;
  std::string text =
      fmt::format("\n{:<12}{}\n", planned.found() ? "best" : "smallest",
                  planned.best.name + (planned.found() ? "" : ", which needs least memory of all that were found"));
  if (!planned.reason.empty()) text += fmt::format("because     {}\n", planned.reason);
  text += epoch_text(question, prediction);
  text += fmt::format("time        {}\n", parts_text(prediction));
  text += fmt::format("memory      {}\n", memory_text(prediction.memory));
  text += fmt::format("known       {}\n", knowledge_text(prediction));
  for (const std::string& line : answer.remedies)
    text += fmt::format("{}{}\n", &line == answer.remedies.data() ? "held back   " : "            ", line);
  if (answer.useful && answer.useful->seconds > 0)
    text += fmt::format("useful      up to {} rank{}, {} a step with {}; {}\n", with_commas(answer.useful->ranks),
                        answer.useful->ranks == 1 ? "" : "s", seconds_text(answer.useful->seconds),
                        answer.useful->strategy, answer.useful->limit);
  return text + "\n" + plan::to_text(planned.best.plan);
}

}  // namespace

std::string to_text(const Question& question, const Answer& answer) {
  const planner::Planned& planned = answer.planned;
  std::string text = fmt::format("{}, mini-batch of {}, on {} rank{} of {}\n\n", question.graph.name,
                                 with_commas(question.mini_batch()), with_commas(question.options.ranks),
                                 question.options.ranks == 1 ? "" : "s", machine_text(question));
  text += strategies_text(planned, question.options.ranks);
  if (!planned.best.refused.empty()) return text;
  text += best_text(question, answer);
  text += what_ifs_text(answer.what_ifs, planned.best.prediction, question.mini_batch());
  return text;
}

}  // namespace orthant::cli
