#pragma once

// The one door to fmt: other modules include this and not the library.
#include <fmt/format.h>
#include <fmt/ranges.h>
