#!/usr/bin/env bash
# Trains the network of examples/demo.yaml and says what happens. usage: scripts/demo.sh <orthant>
set -euo pipefail
# Threads that wait must not spin: the demo may share the machine.
export OMP_WAIT_POLICY=passive
cd "$(dirname "${BASH_SOURCE[0]}")/.."
orthant=$1

say() { printf '\n== %s\n   $ %s\n\n' "$1" "${*:2}" && "${@:2}"; }

say "1/3 The network: CosmoFlow, which reads cosmological parameters out of a 3-D distribution of matter" \
  "$orthant" inspect cosmoflow --input 4x32x32x32
say "2/3 Training it on synthetic volumes, about a minute; every number of examples/demo.yaml can be changed like this: steps=50" \
  "$orthant" train examples/demo.yaml output=runs/demo overwrite=true
say "3/3 What the run left behind: the run file with all defaults, the log, the losses, the weights with PyTorch's names" \
  ls -lh runs/demo
