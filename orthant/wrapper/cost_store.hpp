#pragma once

#include "orthant/microbatch/store.hpp"
#include "orthant/wrapper/measuring.hpp"

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace orthant::wrapper {

/// What is known of a problem: the costs of ways, and for which cuts all ways within a limit are among them.
struct Known {
  Costs costs;
  std::map<std::string, std::int64_t> limits;  ///< by the text of the cut
};

/// The file of measurements, read once. Any thread may ask.
class CostStore {
 public:
  /// `complain` hears one line if the file cannot be used.
  CostStore(const std::string& path, const std::string& machine,
            const std::function<void(const std::string&)>& complain);

  [[nodiscard]] Known find(const std::string& problem);
  /// Replaces what is known, here and in the file.
  void put(const std::string& problem, const Known& known);

 private:
  std::mutex mutex_;
  microbatch::Store store_;
  microbatch::Records records_;
};

}  // namespace orthant::wrapper
