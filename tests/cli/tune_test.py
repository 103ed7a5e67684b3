"""tune: plans in pieces that train like others, limits that cannot be, files of measurements that are no help."""

import csv
import json
import os
import pathlib
import subprocess
import unittest

from program import PROGRAM, ProgramTest

NETWORK = ("cosmoflow", "--input", "4x16x16x16", "--batch", 4, "--set", "dropout=0", "--threads", 2)
RUN = """model: cosmoflow
input: 4x16x16x16
settings: {dropout: 0}
mini_batch: 4
steps: 20
optimizer: {kind: sgd, momentum: 0.9}
learning_rate: 0.001
data: {kind: synthetic, samples: 8}
threads: 2
"""


class Tune(ProgramTest):
    def setUp(self):
        super().setUp()
        self.cache = self.folder / "kernels.json"
        os.environ["ORTHANT_CACHE"] = str(self.cache)

    def tune(self, *arguments):
        return json.loads(self.expect_success("tune", *NETWORK, "--json", *arguments))

    def losses(self, name):
        rows = csv.DictReader((self.folder / name / "metrics.csv").read_text().splitlines())
        return [float(row["loss"]) for row in rows]

    def in_pieces(self, tuned, samples, slabs=1):
        """The plan with every convolution in pieces, by the algorithm that computes all samples at once."""
        plan = json.loads((self.folder / tuned).read_text())
        for node in plan["nodes"]:
            for choice in node.get("kernels", {}).values():
                algorithm = choice.pop("algorithm", None) or choice.pop("pieces")[0]["algorithm"]
                # oneDNN cannot add to the gradient of an earlier piece.
                algorithm = "direct" if algorithm == "onednn" else algorithm
                choice["pieces"] = [{"algorithm": algorithm, "samples": samples, "slabs": slabs}]
        self.write("pieces.json", json.dumps(plan))
        return "pieces.json"

    def test_a_tuned_plan_trains_as_others_do(self):
        first = self.tune("--workspace", "64MiB", "-o", "tuned.json")
        self.assertGreater(first["measured"], 0)
        self.assertLessEqual(first["tuned_seconds"], first["undivided_seconds"])
        for layer in first["layers"]:
            self.assertLessEqual(layer["tuned"]["workspace_bytes"], 64 << 20)
            self.assertLess(layer["tuned"]["relative_error"], 2e-6)
        second = self.tune("--workspace", "64MiB", "-o", "again.json")
        self.assertEqual(second["measured"], 0)
        self.assertEqual((self.folder / "again.json").read_text(), (self.folder / "tuned.json").read_text())

        self.write("run.yaml", RUN)
        self.expect_success("train", "run.yaml", "--algorithm", "rule", "output=rule")
        plans = {"tuned": "tuned.json", "pieces": self.in_pieces("tuned.json", 1, 2)}
        for name, plan in plans.items():
            self.expect_success("train", "run.yaml", "--plan", plan, f"output={name}")
            for mine, other in zip(self.losses(name), self.losses("rule"), strict=True):
                self.assertAlmostEqual(mine, other, delta=1e-4 * abs(other))
            self.assertIn("pieces" if name == "pieces" else "kernels", (self.folder / name / "plan.json").read_text())
        layers = json.loads(self.expect_success("bench", "step", *NETWORK, "--plan", "pieces.json", "--steps", 2, "--layers", "--json"))["layers"]
        self.assertIn("conv1.forward.8", [layer["name"] for layer in layers])

    def test_limits_that_cannot_be(self):
        for option in ("--workspace", "--total", "--memory"):
            for value in ("-1", "nan", "much", "1e400", "", "64 parsecs"):
                self.expect_error(64, option, "tune", *NETWORK, f"{option}={value}")
        self.expect_error(71, "takes at least", "tune", *NETWORK, "--workspace", "0", "--policy", "undivided")
        self.expect_error(71, "take at least", "tune", *NETWORK, "--total", "0")
        self.expect_error(71, "--memory", "tune", *NETWORK, "--memory", "1MiB")
        self.expect_error(64, "within which limit?", "tune", *NETWORK)
        self.expect_error(64, "excludes", "tune", *NETWORK, "--total", "1GiB", "--workspace", "1GiB")
        self.expect_error(64, "--policy", "tune", *NETWORK, "--workspace", "1GiB", "--policy", "some")

    def test_files_of_measurements_that_are_no_help(self):
        words = [str(word) for word in ("tune", *NETWORK, "--workspace", "1GiB", "--policy", "undivided", "--json")]

        def lines():
            result = self.run_program(*words)
            self.assertEqual(result.returncode, 0, result.stderr)
            return [line for line in result.stderr.splitlines() if not line.startswith("measuring")], json.loads(result.stdout)["measured"]

        self.cache.write_text('{"format": "orthant-ker')
        said, measured = lines()
        self.assertEqual((len(said), measured > 0), (1, True), said)
        self.assertIn("ignoring the measured kernels", said[0])
        self.assertEqual(lines(), ([], 0))
        document = json.loads(self.cache.read_text())
        (machine,) = document["machines"]
        document["machines"] = {"another processor": document["machines"][machine]}
        self.cache.write_text(json.dumps(document))
        said, measured = lines()
        self.assertEqual((said, measured > 0), ([], True))
        self.assertEqual(set(json.loads(self.cache.read_text())["machines"]), {"another processor", machine})
        os.environ["ORTHANT_CACHE"] = "/proc/kernels.json"
        said, measured = lines()
        self.assertEqual((len(said), measured > 0), (1, True), said)
        self.assertIn("cannot write '/proc/kernels.json'", said[0])

    def test_two_may_write_at_once(self):
        words = [str(word) for word in ("tune", "--workspace", "1GiB", "--policy", "undivided", "--threads", 1, "--json")]
        networks = [["cosmoflow", "--input", f"4x{size}x{size}x{size}"] for size in (16, 32)]
        running = [subprocess.Popen([PROGRAM, *words, *network], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for network in networks]
        for process in running:
            _, errors = process.communicate(timeout=600)
            self.assertEqual(process.returncode, 0, errors)
        for network in networks:
            again = json.loads(self.expect_success(*words, *network))
            self.assertEqual(again["measured"], 0, network)


if __name__ == "__main__":
    unittest.main()
