#include "orthant/cli/command_line.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/cli/commands.hpp"
#include "orthant/cli/parallel.hpp"
#include "orthant/comm/failure.hpp"
#include "orthant/comm/run.hpp"
#include "orthant/comm/version.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

namespace orthant::cli {
namespace {

using base::Exit;
using base::fail;

int print_error(Exit code, const std::string& message) {
  comm::print_error(message);
  return static_cast<int>(code);
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// "orthant bench step": the command as it was typed so far.
std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

/// The innermost command that the arguments chose.
const CLI::App& chosen(const CLI::App& app) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  return commands.empty() ? app : chosen(*commands.front());
}

[[noreturn]] void fail_unknown(const CLI::App& command, const std::string& word) {
  if (word.size() > 1 && word.front() == '-') {
    const std::string name = word.substr(0, word.find('='));
    fail(Exit::usage, "{}: unknown option '{}'{}", full_name(command), name,
         base::suggestion(name, option_names(command)));
  }
  const std::vector<std::string> commands = command_names(command);
  if (!commands.empty())
    fail(Exit::usage, "{}: unknown command '{}'{}", full_name(command), word, base::suggestion(word, commands));
  fail(Exit::usage, "{}: unexpected argument '{}'; see {} --help", full_name(command), word, full_name(command));
}

[[noreturn]] void fail_usage(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = chosen(app);
  const std::vector<std::string> extras = app.remaining(true);
  if (!extras.empty()) fail_unknown(command, extras.front());
  if (!command_names(command).empty()) {
    fail(Exit::usage, "{}: a command is missing{}; see {} --help", full_name(command),
         base::suggestion("", command_names(command)), full_name(command));
  }
  fail(Exit::usage, "{}: {}; see {} --help", full_name(command), error.what(), full_name(command));
}

void parse_and_run(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    app.exit(asked);
  } catch (const CLI::ParseError& error) {
    fail_usage(app, error);
  }
  if (std::fflush(stdout) != 0) fail(Exit::io, "cannot write to standard output; is the disk full or the pipe closed?");
}

void add_commands(CLI::App& app) {
  add_models(app);
  add_inspect(app);
  add_train(app);
  add_evaluate(app);
  add_infer(app);
  add_export(app);
  add_step(app);
  add_bench(app);
  add_data(app);
  add_plan(app);
  add_calibrate(app);
  add_tune(app);
  add_doctor(app);
}

}  // namespace

int run(int argc, char** argv) {
  // A file that grows beyond the limit (ulimit -f) is an error of that write, with its name.
  std::signal(SIGXFSZ, SIG_IGN);
  set_command_line(argc, argv);
  CLI::App app{"Orthant trains convolutional networks on samples too large for one machine.", "orthant"};
  add_commands(app);
  try {
    app.set_version_flag("--version", "orthant " + comm::version_text());
    app.require_subcommand(1);
    parse_and_run(app, argc, argv);
    return static_cast<int>(Exit::done);
  } catch (const Quit& quit) {
    return quit.code;
  } catch (const base::Error& error) {
    comm::let_rank_0_fail_first();
    return print_error(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return print_error(Exit::does_not_fit, "out of memory; use a smaller mini-batch or a smaller input");
  } catch (const std::exception& error) {
    return print_error(Exit::internal, std::string("unexpected: ") + error.what() + "; please report this");
  }
}

}  // namespace orthant::cli
