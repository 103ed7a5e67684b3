#!/usr/bin/env bash
# Makes docs/images anew from real runs; about two minutes. usage: scripts/draw_images.sh <orthant>
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
orthant=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$orthant" train examples/demo.yaml output="$work/demo"
scripts/draw_chart.py loss "$work/demo/metrics.csv" docs/images/demo-loss.svg

"$orthant" bench step cosmoflow --input 4x128x128x128 --batch 1 --steps 10 --layers --json > "$work/bench.json"
scripts/draw_chart.py layers "$work/bench.json" docs/images/cosmoflow-layers.svg
