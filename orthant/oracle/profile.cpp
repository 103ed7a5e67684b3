#include "orthant/oracle/profile.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/oracle/shipped_profiles.hpp"

namespace orthant::oracle {

std::vector<std::string> shipped_profile_names() {
  std::vector<std::string> names;
  for (const ShippedProfile& profile : shipped_profiles()) names.emplace_back(profile.name);
  return names;
}

Profile shipped_profile(const std::string& name) {
  for (const ShippedProfile& profile : shipped_profiles()) {
    if (name == profile.name) return profile_from_json(profile.text, name);
  }
  base::fail(base::Exit::usage, "no profile '{}' comes with the program{}", name,
             base::suggestion(name, shipped_profile_names()));
}

}  // namespace orthant::oracle
