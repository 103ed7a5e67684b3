#include "orthant/comm/version.hpp"

#include "orthant/base/format.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/comm/machine.hpp"

#include <elf.h>
#include <link.h>

#include <cstring>

namespace orthant::comm {
namespace {

constexpr std::size_t shown_bytes = 6;

/// The build id among the notes of a segment, in hexadecimal; empty if there is none.
std::string build_id_in(const char* notes, std::size_t bytes) {
  const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
  for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes + at, sizeof(header));
    const std::size_t name = at + sizeof(header);
    const std::size_t content = name + padded(header.n_namesz);
    at = content + padded(header.n_descsz);
    if (at > bytes) break;
    if (header.n_type != NT_GNU_BUILD_ID || header.n_namesz != 4 || std::memcmp(notes + name, "GNU", 4) != 0) continue;
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(header.n_descsz, shown_bytes); ++i)
      text += fmt::format("{:02x}", static_cast<unsigned char>(notes[content + i]));
    return text;
  }
  return "";
}

/// Called for the program itself, which is the first of all loaded objects.
int find_build_id(dl_phdr_info* object, std::size_t /*size*/, void* result) {
  auto& text = *static_cast<std::string*>(result);
  for (int i = 0; i < object->dlpi_phnum && text.empty(); ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE)
      // NOLINTNEXTLINE(performance-no-int-to-ptr): this is how the loader says where a segment is.
      text = build_id_in(reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return 1;
}

}  // namespace

std::string version_text() {
  std::string build;
  dl_iterate_phdr(find_build_id, &build);
  return build.empty() ? ORTHANT_VERSION : fmt::format("{}, build {}", ORTHANT_VERSION, build);
}

void check_same_program(Comm& comm, const std::string& version) {
  const std::string first = on_root(comm, [&] { return fmt::format("{}\n{}", version, host_name()); });
  const std::size_t line = first.find('\n');
  agree(comm, [&] {
    if (first.substr(0, line) == version) return;
    base::fail(base::Exit::disagreement,
               "host '{}' runs version {}, but rank 0 on host '{}' runs version {}; install the same program on all "
               "hosts",
               host_name(), version, first.substr(line + 1), first.substr(0, line));
  });
}

}  // namespace orthant::comm
