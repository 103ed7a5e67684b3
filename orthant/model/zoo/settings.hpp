#pragma once

#include "orthant/model/zoo.hpp"

namespace orthant::model::zoo {

/// The settings of one network: the user's, or the defaults. Errors name the network and the setting.
class Settings {
 public:
  /// Throws Error if a value is given for a setting that the network does not have.
  Settings(const ZooEntry& entry, const SettingValues& values);

  /// Each throws Error if the value is of another kind or out of range.
  [[nodiscard]] std::int64_t at_least(std::int64_t least, const std::string& name) const;
  [[nodiscard]] double rate(const std::string& name) const;
  [[nodiscard]] bool flag(const std::string& name) const;

 private:
  [[nodiscard]] const std::string& text(const std::string& name) const;

  std::string network_;
  SettingValues values_;
};

}  // namespace orthant::model::zoo
