#pragma once

#include <span>

namespace orthant::oracle {

/// A file of orthant/oracle/profiles, which the build puts into the program.
struct ShippedProfile {
  const char* name;
  const char* text;
};

std::span<const ShippedProfile> shipped_profiles();

}  // namespace orthant::oracle
