#pragma once

// The only header that includes fmt: other modules include this one instead.
#include <fmt/format.h>
#include <fmt/ranges.h>
