#pragma once

#include <cstdint>
#include <string>

namespace orthant::data::io {

/// Where the files of a made data set go.
struct SetDirectory {
  std::string path;
  std::string prefix;      ///< how the names of its files begin
  std::int64_t bytes = 0;  ///< of all files, about
  bool overwrite = false;  ///< the files of an earlier set may go
};

/// Refuses a directory in which nothing can be written, whether it is there or has to be made; changes nothing.
void check_writable(const std::string& path);

/// Refuses a directory that cannot be written, is not empty, or has too little room; changes nothing.
void check_directory(const SetDirectory& directory);

/// The same, and makes it; with `overwrite` removes the files of the set that was there.
void make_directory(const SetDirectory& directory);

}  // namespace orthant::data::io
