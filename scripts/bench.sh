#!/usr/bin/env bash
# Seconds per training step of the three reference networks. usage: scripts/bench.sh <orthant>
set -euo pipefail
orthant=$1
threads=${THREADS:-$(nproc)}

step() { printf '\n== %s %s, mini-batch %s\n' "$1" "$2" "$3" && "$orthant" bench step "$1" --input "$2" --batch "$3" --threads "$threads" --steps "$4"; }

step cosmoflow 4x128x128x128 1 10
step unet3d 1x64x64x64 1 3
step resnet50 3x224x224 8 5
