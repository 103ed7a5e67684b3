#!/usr/bin/env bash
# clang-format and clang-tidy over the tree, or clang-tidy over the sources given. usage: scripts/lint.sh <jobs> [<source>...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs=$1
shift

mapfile -t sources < <(find orthant tests examples -name '*.[ch]pp' | sort)
clang-format --dry-run --Werror "${sources[@]}"

(($#)) || mapfile -t sources < <(find orthant -name '*.cpp' | sort)
(($#)) && sources=("$@")
# GCC's flags that clang does not know must not stop it.
printf '%s\0' "${sources[@]}" |
  xargs -0 -n 1 -P "$jobs" clang-tidy -p "${ORTHANT_BUILD:-build/release}" --quiet --extra-arg=-Wno-unknown-warning-option 2> >(grep -v "warnings\? generated" >&2)
