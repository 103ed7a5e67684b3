#include "orthant/data/io/large_block.hpp"

#include "orthant/base/checked.hpp"

#include <sys/mman.h>

#include <new>

namespace orthant::data::io {
namespace {

constexpr std::int64_t huge_page_bytes = std::int64_t{2} << 20;
constexpr std::int64_t page_bytes = 4096;

}  // namespace

LargeBlock::LargeBlock(std::int64_t bytes) : bytes_(bytes) {
  const std::int64_t alignment = bytes >= huge_page_bytes ? huge_page_bytes : page_bytes;
  const std::int64_t length = base::checked_add(bytes, alignment - 1) / alignment * alignment;
  if (length == 0) return;
  void* memory = std::aligned_alloc(static_cast<std::size_t>(alignment), static_cast<std::size_t>(length));
  if (memory == nullptr) throw std::bad_alloc();
  memory_.reset(static_cast<std::byte*>(memory));
  // If the system refuses, small pages are used.
  if (alignment == huge_page_bytes) madvise(memory, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
}

}  // namespace orthant::data::io
