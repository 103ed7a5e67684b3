#pragma once

#include "orthant/model/fields.hpp"

namespace orthant::train {

using Words = std::vector<std::string>;

/// Values of a run's keys, refused where they are out of range.
std::int64_t integer_in(const model::Fields& fields, const std::string& key, std::int64_t fallback, std::int64_t low,
                        std::int64_t high);
double number_in(const model::Fields& fields, const std::string& key, double fallback, double low, double high);
/// From 0 on and below `end`.
double number_below(const model::Fields& fields, const std::string& key, double fallback, double end);
/// A positive number of bytes: 4GiB, 500 MiB, 1000000.
std::int64_t bytes_or(const model::Fields& fields, const std::string& key, std::int64_t fallback);
std::uint64_t read_seed(const model::Fields& fields);

std::string word_or(const model::Fields& fields, const std::string& key, const std::string& fallback);
std::size_t choice_or_first(const model::Fields& fields, const std::string& key, const Words& words);
/// A path or a list of paths.
Words read_paths(const model::Fields& fields, const std::string& key);

/// "optimizer: adam" is short for "optimizer: {kind: adam}".
model::Document as_map(const model::Document& value, const std::string& key);

}  // namespace orthant::train
