"""docs/onnx.md from top to bottom: its Python, its run file and its commands, on a small network."""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import warnings

import numpy
import torch

from onnx_networks import SegResNet
from tensor_files import read_safetensors

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Network(SegResNet):
    """Of one channel, as the page has it."""

    def __init__(self):
        super().__init__()
        self.init = torch.nn.Conv3d(1, 8, 3, padding=1, bias=False)


def reader_of_safetensors():
    """Debian has no package safetensors; the page's import finds the tests' own reader."""
    module = types.ModuleType("safetensors.torch")
    module.load_file = lambda path: {name: torch.from_numpy(value.copy()) for name, value in read_safetensors(path).items()}
    sys.modules["safetensors"], sys.modules["safetensors.torch"] = types.ModuleType("safetensors"), module


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orthant", required=True, help="the program")
    orthant = pathlib.Path(parser.parse_args().orthant).resolve()
    blocks = re.findall(r"^```(\w+)[^\n]*\n(.*?)^```", (ROOT / "docs/onnx.md").read_text(), re.MULTILINE | re.DOTALL)
    environment = {**os.environ, "PATH": f"{orthant.parent}:{os.environ['PATH']}"}
    reader_of_safetensors()
    model = Network().train()
    scope = {"model": model}
    commands = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        numpy.save("x.npy", numpy.random.RandomState(0).standard_normal((4, 1, 16, 16, 16)).astype("f4"))
        numpy.save("y.npy", numpy.random.RandomState(1).randint(0, 3, (4, 16, 16, 16)))
        pathlib.Path("run.yaml").write_text(next(text for kind, text in blocks if kind == "yaml"))
        for kind, text in blocks:
            if kind == "python":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    exec(text, scope)
            for line in text.splitlines() if kind == "sh" else ():
                done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True)
                print(f"{line}\n{done.stdout}{done.stderr}", flush=True)
                if done.returncode != 0:
                    sys.exit(f"'{line}' ended with {done.returncode}")
                commands += 1
        os.chdir("/")
    sys.exit(0 if commands >= 5 else "the page has lost its commands")


main()
