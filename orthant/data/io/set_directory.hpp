#pragma once

#include <cstdint>
#include <string>

namespace orthant::data::io {

/// The directory for the files of a generated data set.
struct SetDirectory {
  std::string path;
  std::string prefix;      ///< how the names of its files begin
  std::int64_t bytes = 0;  ///< of all files, approximately
  bool overwrite = false;  ///< the files of an earlier set may be removed
};

/// Throws Error if no file can be written in a directory, whether it exists or would have to be made. Changes nothing.
void check_writable(const std::string& path);

/// Throws Error if the directory cannot be written, is not empty, or has too little free space. Changes nothing.
void check_directory(const SetDirectory& directory);

/// Does the same checks, then makes the directory; with `overwrite`, removes the files of the earlier set.
void make_directory(const SetDirectory& directory);

}  // namespace orthant::data::io
