// oneDNN builds small hash maps in every call of its execute function. Programs that link this object keep freed blocks
// of operator new of up to 512 bytes in a list per thread and size, so that a steady training step never reaches
// malloc. It is an object of its own because operator new belongs to the whole program: a library must not replace it
// unasked.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

constexpr std::size_t unit_bytes = 32;
constexpr std::size_t list_count = 17;  // lists of 0, 32, ..., 512 bytes

/// Stands before every block; the size keeps the alignment that malloc promises.
struct alignas(16) Header {
  std::size_t list = list_count;  ///< list_count: too large for a list
  Header* next = nullptr;
};

thread_local std::array<Header*, list_count> free_blocks{};

void* get_memory(std::size_t bytes) {
  while (true) {
    if (void* const memory = std::malloc(bytes)) return memory;  // NOLINT(cppcoreguidelines-no-malloc)
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

[[gnu::visibility("default")]] void* operator new(std::size_t bytes) {
  const std::size_t list = (bytes + unit_bytes - 1) / unit_bytes;
  if (bytes > SIZE_MAX - sizeof(Header)) throw std::bad_alloc();
  if (list >= list_count) {
    auto* const block = new (get_memory(sizeof(Header) + bytes)) Header;
    return block + 1;
  }
  if (Header* const block = free_blocks[list]) {
    free_blocks[list] = block->next;
    return block + 1;
  }
  auto* const block = new (get_memory(sizeof(Header) + list * unit_bytes)) Header{.list = list};
  return block + 1;
}

[[gnu::visibility("default")]] void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  Header* const block = static_cast<Header*>(memory) - 1;
  if (block->list == list_count) {
    std::free(block);  // NOLINT(cppcoreguidelines-no-malloc)
    return;
  }
  block->next = free_blocks[block->list];
  free_blocks[block->list] = block;
}

[[gnu::visibility("default")]] void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
#endif
