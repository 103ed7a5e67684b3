#!/usr/bin/env bash
# Makes docs/images anew from real runs; some minutes. usage: scripts/draw_images.sh <orthant>
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
orthant=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$orthant" data make cosmology "$work/demo-universes" --size 32 --box 512 --samples 512
"$orthant" train examples/cosmology.yaml data.files="$work/demo-universes" output="$work/demo"
scripts/draw_chart.py loss "$work/demo/metrics.csv" docs/images/demo-loss.svg

"$orthant" bench step cosmoflow --input 4x128x128x128 --batch 1 --steps 10 --layers --json > "$work/bench.json"
scripts/draw_chart.py layers "$work/bench.json" docs/images/cosmoflow-layers.svg

"$orthant" data make cosmology "$work/universe" --size 256 --seed 1
scripts/draw_volumes.py universe "$work/universe/universe_00000.h5" docs/images/universe.png

"$orthant" data make cosmology "$work/universes" --size 128 --box 512 --samples 40 --type float
scripts/draw_volumes.py spectrum "$work/universes" docs/images/power-spectrum.svg

"$orthant" data make organs "$work/organs" --size 64 --samples 4
scripts/draw_volumes.py organs "$work/organs/organs_00003.h5" docs/images/organs.png
