#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/base/json_fields.hpp"
#include "orthant/oracle/profile.hpp"

#include <array>

namespace orthant::oracle {
namespace {

using base::Exit;
using base::fail;
using base::Json;
using base::JsonFields;

constexpr const char* profile_format = "orthant-profile";
constexpr int profile_version = 1;

/// What no machine has more of: figures beyond are mistakes of units.
constexpr int most_of_a_machine = 1 << 16;
constexpr std::int64_t no_bytes = 0, most_memory_bytes = std::int64_t{1} << 60;
constexpr double most_seconds = 1e6, least_task_seconds = 1e-12, most_per_second = 1e18, most_operations = 1e24;
constexpr double least_per_second = 1;  ///< a rate of zero would take for ever
constexpr double most_error = 10, most_share = 20, most_intensity = 1e6;

const std::array<std::string, 11> document_keys{"format",  "version",  "name",   "source",  "processor", "machine",
                                                "samples", "settings", "inside", "between", "curves"};
const std::array<std::string, 8> machine_keys{"ranks_per_machine", "threads_per_rank", "memory_bytes", "process_bytes",
                                              "shares_memory",     "poll_seconds",     "pace_error",   "source"};
const std::array<std::string, 3> sample_keys{"file_bytes_per_second", "store_bytes_per_second", "source"};
const std::array<std::string, 7> setting_keys{
    "threads", "ranks_per_machine", "flops_per_second", "memory_bytes_per_second", "step_seconds", "source", "tasks"};
const std::array<std::string, 8> task_keys{"task",    "family",  "flops", "bytes",
                                           "extents", "seconds", "error", "scratch_bytes"};
const std::array<std::string, 9> link_keys{"latency_seconds",
                                           "bytes_per_second",
                                           "message_seconds",
                                           "sender_seconds_per_byte",
                                           "receiver_seconds_per_byte",
                                           "eager_bytes",
                                           "moves_alone",
                                           "error",
                                           "source"};
const std::array<std::string, 5> curve_keys{"family", "peak_share", "half_operations_per_byte", "error", "source"};

Json to_json(const MeasuredTask& task, const std::string& key) {
  return {{"task", key},
          {"family", task.features.family},
          {"flops", task.features.flops},
          {"bytes", task.features.bytes},
          {"extents", task.features.extents},
          {"seconds", task.seconds},
          {"error", task.error},
          {"scratch_bytes", task.scratch_bytes}};
}

/// Without its tasks: see with_tasks().
Json to_json(const Setting& setting) {
  return {{"threads", setting.threads},
          {"ranks_per_machine", setting.ranks_per_machine},
          {"flops_per_second", setting.flops_per_second},
          {"memory_bytes_per_second", setting.memory_bytes_per_second},
          {"step_seconds", setting.step_seconds},
          {"source", setting.source}};
}

Json to_json(const Link& link) {
  return {{"latency_seconds", link.latency_seconds},
          {"bytes_per_second", link.bytes_per_second},
          {"message_seconds", link.message_seconds},
          {"sender_seconds_per_byte", link.sender_seconds_per_byte},
          {"receiver_seconds_per_byte", link.receiver_seconds_per_byte},
          {"eager_bytes", link.eager_bytes},
          {"moves_alone", link.moves_alone},
          {"error", link.error},
          {"source", link.source}};
}

Json to_json(const EfficiencyCurve& curve) {
  return {{"family", curve.family},
          {"peak_share", curve.peak_share},
          {"half_operations_per_byte", curve.half_intensity},
          {"error", curve.error},
          {"source", curve.source}};
}

/// What a list of tasks is written as until they take its place.
std::string placeholder(std::size_t setting) { return fmt::format("tasks of setting {}", setting); }

/// Tasks are thousands, so each is one line, which the library does not write by itself.
std::string with_tasks(std::string text, const Profile& profile) {
  for (std::size_t i = 0; i < profile.settings.size(); ++i) {
    std::string list = "[";
    for (const auto& [key, task] : profile.settings[i].tasks)
      list += fmt::format("{}\n        {}", list.size() > 1 ? "," : "", to_json(task, key).dump());
    list += profile.settings[i].tasks.empty() ? "]" : "\n      ]";
    const std::string mark = fmt::format("\"tasks\": \"{}\"", placeholder(i));
    text.replace(text.find(mark), mark.size(), "\"tasks\": " + list);
  }
  return text;
}

MeasuredTask task_from(const JsonFields& fields) {
  fields.allow(task_keys);
  MeasuredTask task{.features = {.family = fields.text("family"),
                                 .flops = fields.real("flops", 0, most_operations),
                                 .bytes = fields.real("bytes", 0, most_operations)},
                    .seconds = fields.real("seconds", least_task_seconds, most_seconds),
                    .error = fields.real("error", 0, most_error),
                    .scratch_bytes = fields.whole("scratch_bytes", no_bytes, most_memory_bytes)};
  for (const Json& extent : fields.list("extents")) {
    if (!extent.is_number() || !(extent.get<double>() >= 1 && extent.get<double>() <= most_operations))
      fail(Exit::bad_data, "{}: 'extents' must be numbers from 1 to {}", fields.where(), most_operations);
    task.features.extents.push_back(extent.get<double>());
  }
  return task;
}

Setting setting_from(const JsonFields& fields) {
  fields.allow(setting_keys);
  Setting setting{.threads = fields.whole("threads", 1, most_of_a_machine),
                  .ranks_per_machine = fields.whole("ranks_per_machine", 1, most_of_a_machine),
                  .flops_per_second = fields.real("flops_per_second", least_per_second, most_per_second),
                  .memory_bytes_per_second = fields.real("memory_bytes_per_second", least_per_second, most_per_second),
                  .step_seconds = fields.real("step_seconds", 0, most_seconds),
                  .source = fields.text("source")};
  int number = 0;
  for (const Json& entry : fields.list("tasks")) {
    const JsonFields task(entry, fmt::format("{}: task {}", fields.where(), ++number));
    if (!setting.tasks.emplace(task.text("task"), task_from(task)).second)
      fail(Exit::bad_data, "{}: '{}' is there already", task.where(), task.text("task"));
  }
  return setting;
}

Link link_from(const JsonFields& fields) {
  fields.allow(link_keys);
  return {.latency_seconds = fields.real("latency_seconds", 0, most_seconds),
          .bytes_per_second = fields.real("bytes_per_second", least_per_second, most_per_second),
          .message_seconds = fields.real("message_seconds", 0, most_seconds),
          .sender_seconds_per_byte = fields.real("sender_seconds_per_byte", 0, 1),
          .receiver_seconds_per_byte = fields.real("receiver_seconds_per_byte", 0, 1),
          .eager_bytes = fields.whole("eager_bytes", no_bytes, most_memory_bytes),
          .moves_alone = fields.flag("moves_alone"),
          .error = fields.real("error", 0, most_error),
          .source = fields.text("source")};
}

EfficiencyCurve curve_from(const JsonFields& fields) {
  fields.allow(curve_keys);
  return {.family = fields.text("family"),
          .peak_share = fields.real("peak_share", 1e-6, most_share),
          .half_intensity = fields.real("half_operations_per_byte", 0, most_intensity),
          .error = fields.real("error", 0, most_error),
          .source = fields.text("source")};
}

void read_machine(const JsonFields& fields, Profile& profile) {
  fields.allow(machine_keys);
  profile.ranks_per_machine = fields.whole("ranks_per_machine", 1, most_of_a_machine);
  profile.threads_per_rank = fields.whole("threads_per_rank", 1, most_of_a_machine);
  profile.memory_bytes = fields.whole("memory_bytes", std::int64_t{1}, most_memory_bytes);
  profile.process_bytes = fields.whole("process_bytes", no_bytes, most_memory_bytes);
  profile.shares_memory = fields.flag("shares_memory");
  profile.poll_seconds = fields.real("poll_seconds", 0, most_seconds);
  profile.pace_error = fields.real("pace_error", 0, most_error);
  profile.machine_source = fields.text("source");
}

void read_samples(const JsonFields& fields, Profile& profile) {
  fields.allow(sample_keys);
  profile.file_bytes_per_second = fields.real("file_bytes_per_second", least_per_second, most_per_second);
  profile.store_bytes_per_second = fields.real("store_bytes_per_second", least_per_second, most_per_second);
  profile.samples_source = fields.text("source");
}

/// Each entry of a list, with the place to name in messages.
template <class Read>
auto all_of(const JsonFields& fields, const char* key, const char* one, Read read) {
  std::vector<decltype(read(fields))> all;
  for (const Json& entry : fields.list(key))
    all.push_back(read(JsonFields(entry, fmt::format("{}: {} {}", fields.where(), one, all.size() + 1))));
  return all;
}

}  // namespace

std::string to_json(const Profile& profile) {
  Json document{{"format", profile_format},
                {"version", profile_version},
                {"name", profile.name},
                {"source", profile.source},
                {"processor", profile.processor},
                {"machine",
                 {{"ranks_per_machine", profile.ranks_per_machine},
                  {"threads_per_rank", profile.threads_per_rank},
                  {"memory_bytes", profile.memory_bytes},
                  {"process_bytes", profile.process_bytes},
                  {"shares_memory", profile.shares_memory},
                  {"poll_seconds", profile.poll_seconds},
                  {"pace_error", profile.pace_error},
                  {"source", profile.machine_source}}},
                {"samples",
                 {{"file_bytes_per_second", profile.file_bytes_per_second},
                  {"store_bytes_per_second", profile.store_bytes_per_second},
                  {"source", profile.samples_source}}},
                {"inside", to_json(profile.inside)},
                {"between", to_json(profile.between)},
                {"curves", Json::array()},
                {"settings", Json::array()}};
  for (const EfficiencyCurve& curve : profile.curves) document["curves"].push_back(to_json(curve));
  for (const Setting& setting : profile.settings) {
    Json& entry = document["settings"].emplace_back(to_json(setting));
    entry["tasks"] = placeholder(document["settings"].size() - 1);
  }
  return with_tasks(document.dump(2), profile) + "\n";
}

Profile profile_from_json(const std::string& text, const std::string& origin) {
  const Json document = base::parse_json(text, origin);
  if (!document.is_object() || document.value("format", Json()) != profile_format)
    fail(Exit::bad_data, "{}: not a machine profile; one is JSON with \"format\": \"{}\"", origin, profile_format);
  const JsonFields fields(document, origin);
  if (const int version = fields.whole("version", 1, most_of_a_machine); version != profile_version)
    fail(Exit::bad_data, "{}: profile version {} is not known here; this program reads version {}", origin, version,
         profile_version);
  fields.allow(document_keys);
  Profile profile{.name = fields.text("name"), .source = fields.text("source"), .processor = fields.text("processor")};
  read_machine(fields.object("machine"), profile);
  read_samples(fields.object("samples"), profile);
  profile.settings = all_of(fields, "settings", "setting", setting_from);
  if (profile.settings.empty()) fail(Exit::bad_data, "{}: 'settings' is empty; there must be one", origin);
  profile.inside = link_from(fields.object("inside"));
  profile.between = link_from(fields.object("between"));
  profile.curves = all_of(fields, "curves", "curve", curve_from);
  return profile;
}

}  // namespace orthant::oracle
