#pragma once

namespace orthant::cli {

/// Parses the arguments and runs the command. The only place where errors are caught: they are printed as one
/// line `error: ...` on stderr and become the exit code of docs/errors.md.
int run(int argc, char** argv);

}  // namespace orthant::cli
