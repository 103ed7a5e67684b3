#!/usr/bin/env bash
# clang-format over the tree, and clang-tidy over orthant/ or the sources given. usage: scripts/lint.sh <jobs> [<source>...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs=$1
shift
status=0

mapfile -t formatted < <(find orthant tests examples -name '*.[ch]pp' | sort)
clang-format --dry-run --Werror "${formatted[@]}" || status=1

sources=("$@")
# allocation_count.cpp defines functions of the C library, whose names are not ours to choose.
(($#)) || mapfile -t sources < <(find orthant -name '*.cpp' ! -name allocation_count.cpp | sort)
printf '%s\0' "${sources[@]}" |
  xargs -0 -n 1 -P "$jobs" clang-tidy -p "${ORTHANT_BUILD:-build/lint}" --quiet 2> >(grep -v "warnings\? generated" >&2) || status=1
exit $status
