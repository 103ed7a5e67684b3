#pragma once

#include <string>
#include <vector>

namespace orthant::data::io {

/// The paths that match a pattern with * or ?, sorted, or the path itself if it has neither. Throws Error if none
/// matches.
std::vector<std::string> matching_paths(const std::string& pattern);

/// Expands a list of paths, patterns, directories (to the files in them that end in one of `endings`) and text files
/// (.txt, with a path on each line, relative to the text file) to files. Throws Error if there are none.
std::vector<std::string> list_files(const std::vector<std::string>& words, const std::vector<std::string>& endings);

}  // namespace orthant::data::io
