"""Runs the program under test and reads what it writes."""

import csv
import json
import pathlib
import subprocess

import numpy

from tensor_files import read_safetensors, write_safetensors


def run(command, **options):
    """Runs a command to its end; a failure shows its standard error."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\nexit code {done.returncode}: {done.stderr}{done.stdout}")
    return done.stdout


def save_weights(path, model):
    """Every parameter and buffer as float32 (counters as int64), under PyTorch's names."""
    tensors = {}
    for name, value in model.state_dict().items():
        array = value.detach().numpy()
        tensors[name] = numpy.ascontiguousarray(array.astype("<f4" if value.is_floating_point() else "<i8"))
    write_safetensors(path, tensors)


def step(orthant, directory, model, settings=(), evaluate=False):
    """`orthant step` on the directory's weights, input and target: (loss, output, {name: gradient})."""
    directory = pathlib.Path(directory)
    command = [orthant, "step", model, "--threads", 2, "--algorithm", "rule", "--dump", directory / "dump"]
    for name in ("weights", "input", "target"):
        command += ["--" + name, directory / (name + (".safetensors" if name == "weights" else ".npy"))]
    for setting in settings:
        command += ["--set", setting]
    run(command + ["--evaluate" if evaluate else "--input-gradient"])
    loss = json.loads((directory / "dump/result.json").read_text())["loss"]
    output = read_safetensors(directory / "dump/outputs.safetensors")["output"]
    return loss, output, {} if evaluate else read_safetensors(directory / "dump/gradients.safetensors")


def train(orthant, directory, settings, algorithm):
    """`orthant train` with a run file of these settings: (losses, learning rates, weights after the last step)."""
    directory = pathlib.Path(directory)
    (directory / "run.yaml").write_text(json.dumps({**settings, "output": str(directory / "run"), "threads": 2}))
    run([orthant, "train", directory / "run.yaml", "--algorithm", algorithm])
    with open(directory / "run/metrics.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    weights = read_safetensors(directory / "run/weights.safetensors")
    return [float(row["loss"]) for row in rows], [float(row["learning_rate"]) for row in rows], weights
