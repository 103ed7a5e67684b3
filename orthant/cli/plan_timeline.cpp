#include "orthant/cli/plan_timeline.hpp"

#include "orthant/base/format.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/schedule/chrome_trace.hpp"

namespace orthant::cli {
namespace {

std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

std::string events_of(const oracle::Timeline& timeline) {
  const std::string others = timeline.members > 1 ? fmt::format(", one of {} alike", timeline.members) : "";
  schedule::ChromeEvents events(
      {.schedule = timeline.schedule, .rank = timeline.rank, .title = fmt::format("rank {}{}", timeline.rank, others)});
  for (std::size_t i = 0; i < timeline.events.size();) {
    const oracle::TimelineEvent& first = timeline.events[i];
    double end = first.end;
    for (++i; i < timeline.events.size() && timeline.events[i].step == first.step; ++i) end = timeline.events[i].end;
    events.add({first.step, nanoseconds(first.begin), nanoseconds(end), nanoseconds(end)});
  }
  return events.text();
}

}  // namespace

oracle::Prediction followed(const Question& question, const plan::Plan& plan, int follow_all_up_to) {
  oracle::StepOptions options = question.options.step;
  options.keep_timeline = true;
  options.follow_all_up_to = follow_all_up_to;
  return oracle::predict(question.graph, plan, question.profile, options);
}

void write_timeline(const std::string& path, const Question& question, const plan::Plan& plan) {
  std::vector<std::string> texts;
  for (const oracle::Timeline& timeline : followed(question, plan, question.options.step.follow_all_up_to).timelines)
    texts.push_back(events_of(timeline));
  data::io::write_text(path, schedule::chrome_trace(texts));
}

}  // namespace orthant::cli
