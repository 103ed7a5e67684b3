"""Files of PyTorch 2's newer exporter, made once (make_onnx_files.py), in evaluation against what PyTorch computed."""

import argparse
import json
import pathlib
import sys
import tempfile

import numpy

import program
from compare import relative_error
from tensor_files import read_safetensors

FILES = pathlib.Path(__file__).resolve().parent / "onnx_files"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orthant", required=True, help="the program")
    args = parser.parse_args()
    wrong = 0
    for name, case in json.loads((FILES / "expected.json").read_text()).items():
        with tempfile.TemporaryDirectory() as directory:
            folder = pathlib.Path(directory)
            wanted = numpy.array(case["output"])
            numpy.save(folder / "x.npy", numpy.random.RandomState(3).standard_normal(case["shape"]).astype("f4"))
            numpy.save(folder / "y.npy", wanted.astype("f4"))
            program.run([args.orthant, "step", FILES / f"{name}.onnx", "--evaluate", "--input", folder / "x.npy", "--target", folder / "y.npy",
                         "--dump", folder / "dump"])
            error = relative_error(read_safetensors(folder / "dump/outputs.safetensors")["output"], wanted)
        print(f"{'ok' if error <= 1e-5 else 'WRONG':5} {name:12} {error:.1e}", flush=True)
        wrong += not error <= 1e-5
    sys.exit(1 if wrong else 0)


main()
