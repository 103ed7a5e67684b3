#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace orthant::base {

/// Opens a file for writing that is new: whatever has the name is removed first, and a link that somebody puts in its
/// place is not followed. Returns -1 with errno set if that fails.
int open_new_file(const std::string& path);

/// fsync() that a signal does not interrupt.
bool sync_file(int descriptor);

/// The text of a file that nothing depends on, such as a cache; nothing if it is missing, no regular file, larger than
/// `most_bytes` or unreadable. Neither waits for a FIFO nor reads a device.
std::optional<std::string> read_if_regular(const std::string& path, std::int64_t most_bytes);

}  // namespace orthant::base
