#pragma once

#include <string>
#include <vector>

namespace orthant::data::io {

/// The paths that a pattern with * or ? stands for, sorted; the path itself if it has neither. Throws Error if
/// none matches.
std::vector<std::string> matching_paths(const std::string& pattern);

/// The files that paths, patterns, directories (the files in them that end in one of `endings`) and text files (.txt,
/// a path per line, relative to the text file) stand for. Throws Error if there is none.
std::vector<std::string> list_files(const std::vector<std::string>& words, const std::vector<std::string>& endings);

}  // namespace orthant::data::io
