"""The commands on several ranks: equal to one rank, and plans that cannot run are refused before anything is started."""

import csv
import json
import os
import unittest

import numpy
from program import ProgramTest

PLAIN = """name: plain
input: 2x8x8x8
layers:
  - {name: conv1, op: conv, filters: 4, kernel: 3, pad: 1}
  - {name: act1, op: relu}
  - {name: pool1, op: max_pool, kernel: 2, stride: 2}
  - {name: conv2, op: conv, filters: 8, kernel: 3, pad: 1}
  - {name: flatten, op: flatten}
  - {name: fc1, op: dense, features: 4}
loss: mean_squared_error
"""
NORMED = PLAIN.replace("name: plain", "name: normed").replace("  - {name: act1", "  - {name: norm1, op: batch_norm}\n  - {name: act1")
CUTS = [(2, "--grid", "d2"), (2, "--strategy", "filter"), (3, "--grid", "h3"), (4, "--grid", "n2d2"), (4, "--strategy", "data+filter")]
TINY = ["cosmoflow", "--input", "4x32x32x32"]


def read_safetensors(path):
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    tensors = {}
    for name, entry in json.loads(content[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = numpy.frombuffer(content[begin:end], "<f4").reshape(entry["shape"])
    return tensors


def safetensors_bytes(tensors):
    header, offset = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [offset, offset + tensor.nbytes]}
        offset += tensor.nbytes
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(tensor.tobytes() for tensor in tensors.values())


class Ranks(ProgramTest):
    def expect_close_tensors(self, found, wanted, message=""):
        self.assertEqual(found.keys(), wanted.keys(), message)
        for name, tensor in wanted.items():
            numpy.testing.assert_allclose(found[name], tensor, rtol=1e-3, atol=1e-5, err_msg=f"{message} {name}")

    def test_step_on_whole_numbers_equals_one_rank_bit_for_bit(self):
        """Inputs, targets and weights are -1, 0 and 1, and the mean is over a power of two, so that all sums are exact."""
        random = numpy.random.default_rng(0)
        whole = lambda shape: random.integers(-1, 2, shape).astype("f4")
        numpy.save(self.folder / "x.npy", whole((4, 2, 8, 8, 8)))
        numpy.save(self.folder / "y.npy", whole((4, 4)))
        self.write("plain.yaml", PLAIN)
        step = ["step", "plain.yaml", "--input", "x.npy", "--target", "y.npy", "--input-gradient", "--threads", 1]
        self.expect_success(*step, "--dump", "shapes")
        shapes = read_safetensors(self.folder / "shapes/gradients.safetensors")
        self.write("weights.safetensors", safetensors_bytes({name: whole(shapes[name].shape) for name in shapes if name != "input"}))
        step += ["--weights", "weights.safetensors"]
        self.expect_success(*step, "--dump", "one")
        wanted = read_safetensors(self.folder / "one/gradients.safetensors")
        for name, gradient in wanted.items():
            self.assertTrue(numpy.any(gradient != 0), name)
            self.assertLess(numpy.abs(gradient).max(), 2**18, f"{name}: the sums may not be exact")
        for number, (ranks, option, cut) in enumerate(CUTS):
            with self.subTest(ranks=ranks, cut=cut):
                self.expect_success(*step, "--dump", f"cut{number}", "--ranks", ranks, option, cut)
                found = read_safetensors(self.folder / f"cut{number}/gradients.safetensors")
                self.assertEqual(found.keys(), wanted.keys())
                for name, gradient in wanted.items():
                    self.assertTrue(numpy.array_equal(found[name], gradient), name)

    def test_step_equals_one_rank(self):
        random = numpy.random.default_rng(0)
        numpy.save(self.folder / "x.npy", random.standard_normal((4, 2, 8, 8, 8), "f4"))
        numpy.save(self.folder / "y.npy", random.standard_normal((4, 4), "f4"))
        for name, network in (("plain", PLAIN), ("normed", NORMED)):
            self.write(f"{name}.yaml", network)
            step = ["step", f"{name}.yaml", "--input", "x.npy", "--target", "y.npy", "--input-gradient", "--threads", 1]
            self.expect_success(*step, "--dump", f"{name}-1")
            wanted = read_safetensors(self.folder / f"{name}-1/gradients.safetensors")
            for number, (ranks, option, cut) in enumerate(CUTS):
                with self.subTest(network=name, ranks=ranks, cut=cut):
                    dump = f"{name}-cut{number}"
                    self.expect_success(*step, "--dump", dump, "--ranks", ranks, option, cut, "--statistics", "global")
                    found = read_safetensors(self.folder / dump / "gradients.safetensors")
                    self.assertEqual(found.keys(), wanted.keys())
                    # All gradients together: the bias before a normalisation has none but rounding.
                    difference = sum(float(numpy.sum((found[key] - wanted[key]) ** 2.0)) for key in wanted)
                    norm = sum(float(numpy.sum(wanted[key] ** 2.0)) for key in wanted)
                    self.assertLess((difference / norm) ** 0.5, 1e-5)

    def test_train_equals_one_rank(self):
        self.write("net.yaml", NORMED)
        self.write("run.yaml", "model: net.yaml\nmini_batch: 4\nsteps: 10\nlearning_rate: 0.001\ndata: {samples: 8}\n")
        losses, weights = [], []
        for ranks in (1, 2):
            self.expect_success("train", "run.yaml", f"output=out{ranks}", "--ranks", ranks, "--threads", 1, "--grid",
                                "1" if ranks == 1 else "d2", "--statistics", "global")
            rows = list(csv.DictReader((self.folder / f"out{ranks}/metrics.csv").read_text().splitlines()))
            losses.append([float(row["loss"]) for row in rows])
            weights.append(read_safetensors(self.folder / f"out{ranks}/weights.safetensors"))
        self.assertEqual(len(losses[0]), 10)
        numpy.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
        self.expect_close_tensors(weights[1], weights[0])

    def test_ranks_that_share_memory_train_as_one_rank(self):
        """Layers of a bucket each, so that weights are common to the ranks and gradients are read in place."""
        layers = "".join(f"  - {{name: conv{i}, op: conv, filters: 256, kernel: 3, pad: 1}}\n  - {{name: act{i}, op: relu}}\n" for i in range(8))
        self.write("net.yaml", f"name: deep\ninput: 256x4x4\nlayers:\n{layers}  - {{name: flatten, op: flatten}}\n"
                               "  - {name: fc, op: dense, features: 4}\nloss: mean_squared_error\n")
        self.write("run.yaml", "model: net.yaml\nmini_batch: 4\nsteps: 12\nlearning_rate: 0.01\n"
                               "optimizer: {kind: sgd, momentum: 0.9}\ndata: {samples: 12}\n")
        losses, weights = {}, {}
        for name, ranks in (("1", 1), ("2", 2), ("2 again", 2), ("3", 3), ("4", 4)):
            output = f"out{name.replace(' ', '-')}"
            self.expect_success("train", "run.yaml", f"output={output}", "--ranks", ranks, "--threads", 1, "--grid", f"n{ranks}" if ranks > 1 else "1")
            rows = csv.DictReader((self.folder / output / "metrics.csv").read_text().splitlines())
            losses[name] = [float(row["loss"]) for row in rows]
            weights[name] = read_safetensors(self.folder / output / "weights.safetensors")
        for name in losses:
            numpy.testing.assert_allclose(losses[name], losses["1"], rtol=1e-4)
            self.expect_close_tensors(weights[name], weights["1"], f"{name} ranks,")
        for key, wanted in weights["2"].items():
            self.assertTrue(numpy.array_equal(weights["2 again"][key], wanted), key)

    def test_bench_step_counts_messages(self):
        result = json.loads(self.expect_success("bench", "step", *TINY, "--ranks", 2, "--grid", "d2", "--steps", 2, "--json"))
        self.assertEqual(result["ranks"], 2)
        for key in ("bytes_sent", "messages_sent", "exposed_communication_seconds", "arena_bytes"):
            self.assertGreater(result[key], 0, key)

    def test_bench_halo_times_what_a_step_sends(self):
        cut = [*TINY, "--grid", "d3", "--threads", 1, "--json"]
        exchanges = json.loads(self.expect_success("bench", "halo", *cut, "--repeats", 2))["exchanges"]
        step = json.loads(self.expect_success("bench", "step", *cut, "--steps", 1, "--warmup", 0))
        # Weights are common to the ranks of a machine, so theirs are only announced.
        self.assertGreater(step["bytes_announced"], 0)
        self.assertEqual(sum(exchange["bytes"] for exchange in exchanges), step["bytes_sent"] + step["bytes_announced"])
        self.assertEqual(sum(exchange["messages"] for exchange in exchanges), step["messages_sent"])
        self.assertIn("halo", {exchange["kind"] for exchange in exchanges})
        for exchange in exchanges:
            self.assertGreater(min(exchange["seconds"], exchange["latency_seconds"], exchange["gigabytes_per_second"]), 0, exchange)

    def test_trace_has_a_row_for_every_rank_and_messages_under_compute(self):
        self.expect_success("bench", "step", *TINY, "--grid", "d2h2", "--threads", 1, "--steps", 2, "--trace", "trace.json")
        events = [e for e in json.loads((self.folder / "trace.json").read_text())["traceEvents"] if e["ph"] == "X"]
        self.assertEqual({event["pid"] for event in events}, {0, 1, 2, 3})
        for rank in range(4):
            mine = [event for event in events if event["pid"] == rank]
            computes = [e for e in mine if e["tid"] == 0 and e["args"].get("flops", 0) > 0]
            messages = [e for e in mine if e["cat"] == "messages" and e["tid"] > 0]
            polls = [e for e in mine if e["name"] == "poll"]
            # Polling is not booked on the step before it.
            self.assertTrue(all(any(p["ts"] >= c["ts"] + c["dur"] - 0.002 for c in computes) for p in polls[-1:]), f"rank {rank}")
            overlapped = [m for m in messages if any(m["ts"] < c["ts"] and c["ts"] + c["dur"] < m["ts"] + m["dur"] for c in computes)]
            self.assertTrue(overlapped, f"rank {rank}")

    def test_ranks_that_share_processors_add_up_in_a_tree(self):
        def form_of_sums(*options):
            self.expect_success("bench", "step", *TINY, "--batch", 2, "--ranks", 2, "--threads", 1, "--steps", 1, "--write-plan", "p.json", *options)
            return json.loads((self.folder / "p.json").read_text()).get("exchanges", {}).get("sums", {}).get("form")

        processors = os.sched_getaffinity(0)
        os.sched_setaffinity(0, [min(processors)])
        try:
            self.assertEqual(form_of_sums(), "tree")
            self.assertEqual(form_of_sums("--exchange", "recursive"), "recursive")
        finally:
            os.sched_setaffinity(0, processors)
        if len(processors) > 1:
            self.assertNotEqual(form_of_sums(), "tree")

    def test_plans_that_cannot_run_are_refused_at_once(self):
        bench = ["bench", "step", *TINY]
        self.expect_error(71, "32 cells deep, too small for d64; the nearest that can run is --grid d16", *bench, "--grid", "d64")
        self.expect_error(71, "the grid d64 is for 64 ranks, but there are 2; use --ranks 64", *bench, "--grid", "d64", "--ranks", 2)
        self.expect_error(71, "the nearest that can run is --grid d2h2, or take a mini-batch of 4", *bench, "--strategy", "data", "--ranks", 4)
        self.expect_error(71, "the nearest that can run is --grid p10", *bench, "--grid", "p100")
        self.expect_error(64, "unknown strategy 'spatail'; did you mean 'spatial'?", *bench, "--strategy", "spatail", "--ranks", 4)
        self.expect_error(65, "4 micro-batches of a mini-batch of 1; use 1 to 1", *bench, "--grid", "d2", "--micro-batches", 4)
        self.write("run.yaml", "model: cosmoflow\ninput: 4x32x32x32\nsteps: 1\noutput: out\n")
        self.expect_error(71, "the nearest that can run is --grid d16", "train", "run.yaml", "--grid", "d64")
        self.expect_error(66, "no file matches", "train", "run.yaml", "data={kind: npy, inputs: '*.no', targets: y.npy}", "--grid", "d2")

        self.expect_success("train", "run.yaml", "--grid", "d2")
        plan = (self.folder / "out/plan.json").read_text()
        self.write("other.json", plan.replace('"conv2"', '"conv99"'))
        self.expect_error(65, "is 'conv99' but cosmoflow has 'conv2' there", *bench, "--plan", "other.json")
        self.write("good.json", plan)
        self.expect_error(71, "is for 2 ranks, but there are 3; use --ranks 2", *bench, "--plan", "good.json", "--ranks", 3)


if __name__ == "__main__":
    unittest.main()
