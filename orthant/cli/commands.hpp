#pragma once

#include <CLI/CLI.hpp>

namespace orthant::cli {

/// Each adds one command to the app. Its callback runs it and throws base::Error when it cannot.
void add_models(CLI::App& app);
void add_inspect(CLI::App& app);
void add_train(CLI::App& app);
void add_evaluate(CLI::App& app);
void add_infer(CLI::App& app);
void add_export(CLI::App& app);
void add_step(CLI::App& app);
void add_bench(CLI::App& app);
void add_data(CLI::App& app);
void add_plan(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_tune(CLI::App& app);
void add_doctor(CLI::App& app);

}  // namespace orthant::cli
