"""Bad files and sizes: one line, the documented exit code, no crash."""

import io
import json
import struct
import unittest

import numpy
from program import ProgramTest

NETWORK = """name: small
input: 2x6x6
layers:
  - {name: conv1, op: conv, filters: 4, kernel: 3, pad: 1}
  - {name: act1, op: relu}
  - {name: flatten, op: flatten}
  - {name: fc1, op: dense, features: 3}
loss: mean_squared_error
"""


def npy(array):
    buffer = io.BytesIO()
    numpy.save(buffer, array)
    return buffer.getvalue()


def safetensors(tensors):
    """name -> (dtype, shape, begin, end); data is zeros."""
    header = json.dumps({name: {"dtype": t, "shape": s, "data_offsets": [a, b]} for name, (t, s, a, b) in tensors.items()}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(max([0, *(b for *_, b in tensors.values())]))


def fitting():
    """A file that fits the network above."""
    shapes = {"conv1.weight": [4, 2, 3, 3], "conv1.bias": [4], "fc1.weight": [3, 144], "fc1.bias": [3]}
    tensors, at = {}, 0
    for name, shape in shapes.items():
        end = at + 4 * int(numpy.prod(shape))
        tensors[name] = ("F32", shape, at, end)
        at = end
    return tensors


class BadInput(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("net.yaml", NETWORK)
        self.write("x.npy", npy(numpy.ones((2, 2, 6, 6), "f4")))
        self.write("y.npy", npy(numpy.ones((2, 3), "f4")))
        self.write("w.safetensors", safetensors(fitting()))

    def step(self, **files):
        files = {"weights": "w.safetensors", "input": "x.npy", "target": "y.npy", "dump": "out", **files}
        return ["step", "net.yaml", *(word for key, value in files.items() for word in (f"--{key}", value))]

    def test_good_files_work(self):
        self.expect_success(*self.step())

    def test_missing_files(self):
        self.expect_error(66, "cannot open 'no.npy': No such file", *self.step(input="no.npy"))
        self.expect_error(66, "cannot open 'no.npy'", *self.step(target="no.npy"))
        self.expect_error(66, "cannot open 'no.safetensors'", *self.step(weights="no.safetensors"))
        self.expect_error(66, "no.yaml", "train", "no.yaml")
        self.expect_error(66, "no.yaml", "inspect", "no.yaml")
        self.expect_error(74, "not a regular file", "train", ".")

    def test_npy_that_is_none_or_does_not_fit(self):
        good = npy(numpy.ones((2, 2, 6, 6), "f4"))
        cases = [
            (b"", "only 0 bytes"),
            (good[:-1], "is truncated"),
            (good[:100], "header claims"),
            (good + b"x", "1 bytes after its array"),
            (NETWORK.encode(), "does not start with"),
            (safetensors(fitting()), "does not start with"),
            (good.replace(b"(2, 2, 6, 6)", b"(9999999999999999999,)"), "no usable number"),
            (good.replace(b"(2, 2, 6, 6)", b"(2, 2, 6, -6)"), "no usable number"),
            (npy(numpy.ones((2, 2, 6, 6), ">f4")), "type '>f4'"),
            (npy(numpy.ones((2, 2, 6, 6), "c8")), "type '<c8'"),
            (npy(numpy.asfortranarray(numpy.ones((2, 2, 6, 6), "f4"))), "Fortran order"),
            (npy(numpy.ones((2, 2), "f4")), "an input is NxCxDxHxW, NxCxHxW or NxCxW"),
            (npy(numpy.ones((0, 2, 6, 6), "f4")), "there is nothing in it"),
        ]
        for content, message in cases:
            with self.subTest(message=message):
                self.write("bad.npy", content)
                self.expect_error(65, message, *self.step(input="bad.npy"))

    def test_input_and_target_must_fit_the_network(self):
        self.write("three.npy", npy(numpy.ones((2, 3), "f4")[:1]))
        self.expect_error(65, "the inputs hold 2 samples but the targets 1", *self.step(target="three.npy"))
        self.expect_error(65, "the network wants targets of shape Nx3", *self.step(target="x.npy"))
        self.write("wide.npy", npy(numpy.ones((2, 2, 8, 8), "f4")))
        self.expect_error(65, "tensor 'fc1.weight' has shape 3x144, but small wants 3x256", *self.step(input="wide.npy"))

    def test_numbers_that_are_not_finite(self):
        x = numpy.ones((2, 2, 6, 6), "f4")
        x[1, 0, 2, 3] = numpy.nan
        self.write("nan.npy", npy(x))
        self.expect_error(65, "'nan.npy' at [1, 0, 2, 3] holds nan", *self.step(input="nan.npy"))
        self.write("run.yaml", "model: net.yaml\nmini_batch: 2\ndata: {kind: npy, inputs: nan.npy, targets: y.npy}\n")
        self.expect_error(65, "'nan.npy' at [1, 0, 2, 3] holds nan", "train", "run.yaml")

    def test_labels_out_of_range(self):
        self.write("net.yaml", NETWORK.replace("mean_squared_error", "cross_entropy"))
        self.write("labels.npy", npy(numpy.array([0, 3])))
        self.expect_error(65, "'labels.npy' at [1] holds label 3, but the network has classes 0 to 2", *self.step(target="labels.npy"))
        self.write("labels.npy", npy(numpy.array([0.0, 1.0])))
        self.expect_error(65, "labels must be integers", *self.step(target="labels.npy"))

    def test_safetensors_that_is_none_or_does_not_fit(self):
        good = safetensors(fitting())
        hole = {name: (t, s, a + 4, b + 4) for name, (t, s, a, b) in fitting().items()}
        overlap = dict(fitting(), **{"fc1.bias": ("F32", [3], 0, 12)})
        missing = {name: entry for name, entry in fitting().items() if name != "fc1.bias"}
        extra = dict(fitting(), **{"fc2.bias": ("F32", [0], 2044, 2044)})
        wrong = dict(fitting(), **{"conv1.weight": ("F32", [4, 2, 9], 0, 288)})
        cases = [
            (b"", "only 0 bytes"),
            (good[:-1], "truncated"),
            (good[:20], "is truncated: its header claims"),
            (struct.pack("<Q", 1 << 40) + good[8:], "more than 100000000"),
            (npy(numpy.ones(3)), "more than 100000000"),
            (good + b"more", "4 bytes after the last tensor"),
            (safetensors(hole), "hole of 4 bytes"),
            (safetensors(overlap), "overlaps"),
            (good.replace(b'"F32"', b'"I32"', 1), 'type "I32" is not supported'),
            (safetensors(missing), "lacks a tensor of small: fc1.bias"),
            (safetensors(extra), "has tensors that small does not have: fc2.bias"),
            (safetensors(wrong), "tensor 'conv1.weight' has shape 4x2x9, but small wants 4x2x3x3"),
        ]
        for content, message in cases:
            with self.subTest(message=message):
                self.write("bad.safetensors", content)
                self.expect_error(65, message, *self.step(weights="bad.safetensors"))

    def test_networks_that_cannot_be(self):
        conv = "{name: conv1, op: conv, filters: 4, kernel: 3, pad: 1}"
        cases = [
            ("{name: conv1, op: conv, filters: 4, kernel: 9, pad: 1}", "reaches over 9 cells"),
            ("{name: conv1, op: conv, filters: 4, kernel: 3, stride: 0}", "stride"),
            ("{name: conv1, op: conv, filters: 4, kernel: 0}", "kernel"),
            ("{name: conv1, op: conv, filters: 4, kernel: 3, pad: -1}", "pad"),
            ("{name: conv1, op: conv, filters: -4, kernel: 3}", "filters"),
            ("{name: conv1, op: conv, filters: 99999999999999999999, kernel: 3}", "filters"),
            ("{name: conv1, op: conv, filters: 9223372036854775807, kernel: 3}", "conv1"),
            ("{name: conv1, op: conv, filters: 4, kernel: 3, groups: 3}", "groups"),
            ("{name: conv1, op: conv, filters: 4, kernal: 3}", "did you mean 'kernel'?"),
            ("{name: conv1, op: convolution, filters: 4}", "conv"),
        ]
        for layer, message in cases:
            with self.subTest(layer=layer):
                self.write("bad.yaml", NETWORK.replace(conv, layer))
                self.expect_error(65, message, "inspect", "bad.yaml")

    def test_sizes_that_cannot_be(self):
        for size in ("4x0x8x8", "4x-1x8x8", "4x99999999999999999999x8x8"):
            with self.subTest(size=size):
                self.expect_error(64, size, "inspect", "cosmoflow", "--input", size)
        for command in (["inspect"], ["bench", "step"]):
            result = self.run_program(*command, "cosmoflow", "--input", "4x9000000000x9000000000x8")
            self.assertIn(result.returncode, (64, 65))
            self.assertEqual(len(result.stderr.splitlines()), 1)
        self.expect_error(71, "GiB are available; use a smaller mini-batch", "bench", "step", "cosmoflow", "--input", "4x256x256x256", "--batch", "1000")
        for size in ("4x4096x4096x4096", "4x3x3x2147483647", "4x2147483647x3x3"):
            with self.subTest(size=size):
                self.expect_error(71, "GiB are available", "bench", "step", "cosmoflow", "--input", size)
                self.expect_error(71, "GiB are available", "bench", "step", "cosmoflow", "--input", size, "--algorithm", "rule")

    def test_run_files_that_cannot_be(self):
        cases = [
            ("model: net.yaml\nstep: 3\n", 65, "run.yaml:2: unknown key 'step'; did you mean 'steps'?"),
            ("model: net.yaml\nmini_batch: 0\n", 65, "run.yaml:2: mini_batch is 0"),
            ("model: cosmoflw\n", 64, "did you mean 'cosmoflow'?"),
            ("model: net.yaml\nweights: no.safetensors\n", 66, "cannot open 'no.safetensors'"),
            ("model: net.yaml\nmini_batch: 65\n", 65, "fewer than a mini-batch of 65"),
            ("model: net.yaml\ndata: {kind: npy, inputs: '*.nothing', targets: y.npy}\n", 66, "no file matches"),
            ("model: net.yaml\noutput: net.yaml/x\n", 74, "cannot make the directory"),
            ("model: net.yaml\nlearning_rate: 1e6\nsteps: 60\n", 87, " at step "),
            ("\x00\x01\x02", 65, "run.yaml:"),
        ]
        for text, code, message in cases:
            with self.subTest(text=text):
                self.write("run.yaml", text)
                self.expect_error(code, message, "train", "run.yaml")
        self.write("run.yaml", "model: net.yaml\n")
        self.expect_error(65, "command line: unknown key 'minibatch'; did you mean 'mini_batch'?", "train", "run.yaml", "minibatch=2")
        self.expect_error(64, "'nonsense' is no override", "train", "run.yaml", "nonsense")

    def test_a_trace_that_cannot_be_written_is_found_out_at_once(self):
        self.write("run.yaml", "model: net.yaml\noutput: run\n")
        self.expect_error(74, "cannot write 'no/trace.json'", "train", "run.yaml", "--trace", "no/trace.json")
        self.assertFalse((self.folder / "run").exists())
        self.expect_error(74, "cannot write 'no/trace.json'", "bench", "step", "net.yaml", "--trace", "no/trace.json")


if __name__ == "__main__":
    unittest.main()
