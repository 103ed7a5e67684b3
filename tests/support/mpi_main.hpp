#pragma once

#include "orthant/comm/comm.hpp"

namespace orthant::test {

/// The ranks that the test program runs on. Longer messages than 1000 bytes travel in pieces, so that splitting is
/// always tested.
///
/// A test must not return on one rank only: no ASSERT_ on what only one rank knows. An exception ends all ranks.
comm::Comm& ranks();

}  // namespace orthant::test
