#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/oracle/profile.hpp"

#include <vector>

namespace orthant::calibrate {

/// Collective. What messages cost between two ranks while the others wait. Takes some seconds; with less than a gigabit
/// per second some ten.
oracle::Link measure_link(comm::Comm& comm, int first, int second);

/// Collective. A look after messages, one of which is in flight between two ranks.
double measure_poll_seconds(comm::Comm& comm, int first, int second);

/// Seconds of messages by their bytes.
struct SizedTime {
  double bytes = 0, seconds = 0;
};
/// The bytes per second of the line through these times that has the least relative errors, whatever its start.
double fitted_speed(const std::vector<SizedTime>& times);

}  // namespace orthant::calibrate
