#!/usr/bin/env bash
# Makes universes, trains a network to read their parameters, and tries it on others. usage: scripts/demo.sh <orthant>
set -euo pipefail
# Threads that wait must not spin: the demo may share the machine.
export OMP_WAIT_POLICY=passive
cd "$(dirname "${BASH_SOURCE[0]}")/.."
orthant=$1

say() { printf '\n== %s\n   $ %s\n\n' "$1" "${*:2}" && "${@:2}"; }

say "1/4 Universes: matter at four redshifts, made from physics for parameters that differ from one to the next" \
  "$orthant" data make cosmology runs/universes --size 32 --box 512 --samples 512 --overwrite
say "2/4 Training: CosmoFlow learns to read the parameters out of the matter, on two ranks with half of every volume each" \
  "$orthant" train examples/cosmology.yaml output=runs/demo overwrite=true --grid d2
say "3/4 The test: parameters of universes it has not seen, each from -1 to 1 over its range" \
  "$orthant" evaluate examples/cosmology.yaml --weights runs/demo/weights.safetensors --validation \
  --names "Ω_m,σ_8,n_s,H_0" --grid d2
say "4/4 What the run left behind: the run file with all defaults, the log, losses and scores, weights with PyTorch's names" \
  ls -lh runs/demo
