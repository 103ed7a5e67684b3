#include "orthant/cli/allocation_count.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ORTHANT_COUNTS_ALLOCATIONS 0
#else
#define ORTHANT_COUNTS_ALLOCATIONS 1
#endif

namespace {

// malloc can reach nothing but globals.
std::atomic<bool> counting{false};
std::atomic<std::int64_t> calls_made{0};

}  // namespace

#if ORTHANT_COUNTS_ALLOCATIONS
namespace {

void count_call() {
  if (counting.load(std::memory_order_relaxed)) calls_made.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// glibc's own entry points. Defined in the program, the functions below come before those of the C library.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

[[gnu::visibility("default")]] void* malloc(std::size_t bytes) {
  count_call();
  return __libc_malloc(bytes);
}

[[gnu::visibility("default")]] void* calloc(std::size_t count, std::size_t bytes) {
  count_call();
  return __libc_calloc(count, bytes);
}

[[gnu::visibility("default")]] void* realloc(void* memory, std::size_t bytes) {
  count_call();
  return __libc_realloc(memory, bytes);
}

[[gnu::visibility("default")]] void* memalign(std::size_t alignment, std::size_t bytes) {
  count_call();
  return __libc_memalign(alignment, bytes);
}

[[gnu::visibility("default")]] void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count_call();
  return __libc_memalign(alignment, bytes);
}

[[gnu::visibility("default")]] int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  count_call();
  void* const got = __libc_memalign(alignment, bytes);
  if (got == nullptr) return ENOMEM;
  *memory = got;
  return 0;
}
}
#endif

namespace orthant::cli {

AllocationCount::AllocationCount() {
  calls_made = 0;
  counting = true;
}

AllocationCount::~AllocationCount() { counting = false; }

std::optional<std::int64_t> AllocationCount::calls() const {
  if (ORTHANT_COUNTS_ALLOCATIONS == 0) return std::nullopt;
  return calls_made.load();
}

}  // namespace orthant::cli
