#include "orthant/schedule/text.hpp"

#include "orthant/base/format.hpp"
#include "orthant/model/arguments.hpp"
#include "orthant/model/signature.hpp"

namespace orthant::schedule {
namespace {

/// One overload per task, so that a new one does not compile without its name.
struct TaskName {
  const char* operator()(const model::ConvTask&) const { return "conv"; }
  const char* operator()(const model::PrepareWeightsTask&) const { return "prepare_weights"; }
  const char* operator()(const model::DenseTask&) const { return "dense"; }
  const char* operator()(const model::PoolTask&) const { return "pool"; }
  const char* operator()(const model::NormSumsTask&) const { return "norm_sums"; }
  const char* operator()(const model::NormTask&) const { return "norm"; }
  const char* operator()(const model::PixelNormTask&) const { return "pixel_norm"; }
  const char* operator()(const model::ActivationTask&) const { return "activation"; }
  const char* operator()(const model::PReluTask&) const { return "prelu"; }
  const char* operator()(const model::ProductTask&) const { return "product"; }
  const char* operator()(const model::ProductSumsTask&) const { return "product_sums"; }
  const char* operator()(const model::RemapTask&) const { return "remap"; }
  const char* operator()(const model::PeaksTask&) const { return "peaks"; }
  const char* operator()(const model::HighestPeakTask&) const { return "highest_peak"; }
  const char* operator()(const model::SoftmaxTask&) const { return "softmax"; }
  const char* operator()(const model::CopyTask&) const { return "copy"; }
  const char* operator()(const model::CopyPiecesTask&) const { return "copy_pieces"; }
  const char* operator()(const model::FillTask&) const { return "fill"; }
  const char* operator()(const model::AddTask&) const { return "add"; }
  const char* operator()(const model::DropoutTask&) const { return "dropout"; }
  const char* operator()(const model::BiasGradientTask&) const { return "bias_gradient"; }
  const char* operator()(const model::LossSumsTask&) const { return "loss_sums"; }
  const char* operator()(const model::LossTask&) const { return "loss"; }
  const char* operator()(const model::UpdateTask&) const { return "update"; }
};

struct WorkName {
  std::string operator()(const model::Task& task) const { return name_of(task); }
  std::string operator()(const Start&) const { return "start"; }
  std::string operator()(const Finish&) const { return "finish"; }
};

const std::string& name_in(const Schedule& schedule, int buffer) {
  return schedule.buffers[static_cast<std::size_t>(buffer)].name;
}

/// "(x, w, -, y)".
std::string arguments_text(const Schedule& schedule, const Step& step) {
  std::vector<std::string> names;
  for (const int argument : step.arguments) names.push_back(argument < 0 ? "-" : name_in(schedule, argument));
  return fmt::format("({})", fmt::join(names, ", "));
}

const char* phase_text(Phase phase) {
  switch (phase) {
    case Phase::forward: return "forward";
    case Phase::backward: return "backward";
    case Phase::update: return "update";
  }
  return "";
}

/// The task's signature; where its tensors begin in their buffers does not belong to that.
std::string detail_text(const model::Task& task) {
  std::string offsets;
  for (const model::Argument& argument : model::arguments(task)) {
    if (argument.layout.offset != 0) offsets += fmt::format(" {}+{}", argument.position.name, argument.layout.offset);
  }
  const auto* conv = std::get_if<model::ConvTask>(&task);
  return fmt::format("{} [{}{}{}]", name_of(task), model::signature(task).text, offsets,
                     conv ? fmt::format(" on {}", model::name_of(conv->algorithm)) : "");
}

std::string message_text(const Schedule& schedule, const Message& message, const char* direction) {
  return fmt::format("; {} rank {}: {} bytes of {} from {}{}", direction, message.peer, message.bytes,
                     name_in(schedule, message.buffer), message.offset_bytes,
                     message.transport == Transport::moved ? "" : fmt::format(" ({})", name_of(message.transport)));
}

std::string piece_text(const Schedule& schedule, const Piece& piece) {
  return fmt::format("{} from {}", name_in(schedule, piece.buffer), piece.offset_bytes);
}

std::string round_text(const Schedule& schedule, const Round& round) {
  std::string text;
  for (const Message& message : round.sends) text += message_text(schedule, message, "to");
  for (const Message& message : round.receives) text += message_text(schedule, message, "from");
  if (round.collective) {
    const Collective& one = *round.collective;
    text += fmt::format("; mpi {} of {} x {} bytes among {} ranks: {} into {}", name_of(one.operation), one.count,
                        model::bytes_of(one.type), one.ranks.size(), piece_text(schedule, one.src),
                        piece_text(schedule, one.dst));
  }
  for (const Combination& one : round.combinations) {
    text +=
        fmt::format("; {} x {} bytes of {} {} {}", one.count, model::bytes_of(one.type), piece_text(schedule, one.src),
                    one.accumulate ? "added to" : "copied to", piece_text(schedule, one.dst));
  }
  return text;
}

std::string buffer_text(const Schedule& schedule, const Buffer& buffer) {
  std::string text = fmt::format("buffer {} {} bytes", buffer.name, buffer.bytes);
  if (buffer.inside >= 0) text += fmt::format(" in {} from {}", name_in(schedule, buffer.inside), buffer.offset_bytes);
  if (buffer.persistent) text += " persistent";
  if (buffer.shared) text += " shared";
  if (buffer.keeper >= 0) text += fmt::format(" kept by rank {}", buffer.keeper);
  return text + fmt::format(" steps {} to {}\n", buffer.first_step, buffer.last_step);
}

}  // namespace

const char* name_of(const model::Task& task) { return std::visit(TaskName{}, task); }

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::halo: return "halo";
    case Kind::gather: return "gather";
    case Kind::redistribution: return "redistribution";
    case Kind::gradient: return "gradient";
    case Kind::weights: return "weights";
    case Kind::statistics: return "statistics";
    case Kind::loss: return "loss";
  }
  return "";
}

const char* name_of(Transport transport) {
  switch (transport) {
    case Transport::moved: return "moved";
    case Transport::in_place: return "in_place";
    case Transport::common: return "common";
  }
  return "";
}

const char* name_of(Collective::Operation operation) {
  switch (operation) {
    case Collective::Operation::all_reduce: return "all_reduce";
    case Collective::Operation::reduce_scatter: return "reduce_scatter";
    case Collective::Operation::all_gather: return "all_gather";
  }
  return "";
}

std::string to_class_text(const Schedule& schedule) {
  std::string text;
  for (const Step& step : schedule.steps) {
    const auto* task = std::get_if<model::Task>(&step.work);
    text += fmt::format("{} {} {}{} scratch {}\n", phase_text(step.phase), step.name,
                        task ? model::signature(*task).text : std::visit(WorkName{}, step.work),
                        fmt::format("({})", fmt::join(step.arguments, ", ")), step.scratch_bytes);
  }
  const auto messages = [](const std::vector<Message>& list) {
    std::string one;
    for (const Message& message : list)
      one += fmt::format(" {} of {} {}", message.bytes, message.buffer, name_of(message.transport));
    return one;
  };
  for (const Exchange& exchange : schedule.exchanges) {
    text += fmt::format("exchange {} {}", exchange.name, name_of(exchange.kind));
    for (const Round& round : exchange.rounds) {
      text += fmt::format("; to{}; from{}", messages(round.sends), messages(round.receives));
      for (const Combination& one : round.combinations)
        text += fmt::format(" {} {} of {}", one.count, one.accumulate ? "added" : "copied", one.src.buffer);
      if (round.collective)
        text += fmt::format(" mpi {} {} {}", name_of(round.collective->operation), round.collective->count,
                            round.collective->ranks.size());
    }
    text += "\n";
  }
  for (const Buffer& buffer : schedule.buffers) {
    text += fmt::format("buffer {} bytes {} inside {} {}{}{} steps {} to {}\n", buffer.name, buffer.bytes,
                        buffer.inside, buffer.persistent ? "persistent " : "", buffer.shared ? "shared " : "",
                        buffer.keeper >= 0 ? "kept" : "", buffer.first_step, buffer.last_step);
  }
  return text;
}

std::string to_text(const Schedule& schedule) {
  std::string text;
  for (const Step& step : schedule.steps)
    text += fmt::format("{} {}{}\n", step.name, std::visit(WorkName{}, step.work), arguments_text(schedule, step));
  return text;
}

std::string to_full_text(const Schedule& schedule) {
  std::string text;
  for (const Step& step : schedule.steps) {
    const auto* task = std::get_if<model::Task>(&step.work);
    text += fmt::format("{} {} {}{}\n", phase_text(step.phase), step.name,
                        task ? detail_text(*task) : std::visit(WorkName{}, step.work), arguments_text(schedule, step));
  }
  for (const Exchange& exchange : schedule.exchanges) {
    text += fmt::format("exchange {} {} tag {}", exchange.name, name_of(exchange.kind), exchange.tag);
    for (std::size_t i = 0; i < exchange.rounds.size(); ++i)
      text += (i == 0 ? "" : "\n  then") + round_text(schedule, exchange.rounds[i]);
    text += "\n";
  }
  for (const Buffer& buffer : schedule.buffers) text += buffer_text(schedule, buffer);
  return text;
}

}  // namespace orthant::schedule
