#!/usr/bin/env bash
# Installs the Debian packages that are missing, and nothing when none is.
# usage: scripts/install_dependencies.sh [--list] <group>...      groups: build test lint fuzz peers
set -euo pipefail

build=(g++ cmake ninja-build make pkg-config libdnnl-dev libhwy-dev libfmt-dev nlohmann-json3-dev libyaml-cpp-dev
  libcli11-dev libgtest-dev libopenmpi-dev openmpi-bin libhdf5-dev libfftw3-dev zlib1g-dev libglpk-dev libprotobuf-dev)
# iproute2 makes the hosts of scripts/cluster.sh. Without OpenBLAS, torch computes in double on the reference BLAS, six times slower.
test=(python3 python3-numpy python3-h5py python3-torch libopenblas0-pthread clang-format iproute2)
lint=(clang-tidy)
fuzz=(clang-14 libclang-rt-14-dev libomp-14-dev)
peers=(python3-venv)

list_only=false
wanted=()
for group in "$@"; do
  case $group in
    --list) list_only=true ;;
    build) wanted+=("${build[@]}") ;;
    test) wanted+=("${test[@]}") ;;
    fuzz) wanted+=("${fuzz[@]}") ;;
    lint) wanted+=("${lint[@]}") ;;
    peers) wanted+=("${peers[@]}") ;;
    *)
      echo "install_dependencies: unknown group '$group'; the groups are build, test, lint, fuzz, peers" >&2
      exit 64
      ;;
  esac
done

if $list_only; then
  printf '%s\n' "${wanted[@]}"
  exit
fi

if ! command -v dpkg-query >/dev/null; then
  echo "install_dependencies: this is not a Debian system; make sure you have: ${wanted[*]}" >&2
  exit
fi

is_installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }
missing=()
for package in "${wanted[@]}"; do
  is_installed "$package" || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install_dependencies: missing packages, and neither root nor sudo here. As root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "Installing from Debian's packages: ${missing[*]}"
apt_get() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }

# Package lists may be absent (a fresh image) or too old to fetch from: update only then.
has_candidates() { ((${#missing[@]} == $(apt-cache madison "${missing[@]}" 2>/dev/null | awk '{print $1}' | sort -u | wc -l))); }
install_missing() { apt_get install -y --no-install-recommends "${missing[@]}" >/dev/null; }
updated=false
if ! has_candidates; then
  apt_get update
  updated=true
fi
if ! install_missing; then
  $updated && exit 1
  apt_get update
  install_missing
fi
