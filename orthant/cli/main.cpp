#include "orthant/cli/command_line.hpp"

#include <malloc.h>

namespace {

/// Freed memory stays with the program: to get pages from the system again takes longer than to fill them with a
/// schedule, and planning makes thousands of schedules. These are the values that the allocator itself arrives at after
/// it has been given back a block of 32 MiB.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  return orthant::cli::run(argc, argv);
}
