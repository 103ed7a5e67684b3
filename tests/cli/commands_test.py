"""What the commands print and leave behind."""

import csv
import json
import os
import re
import signal
import subprocess
import time
import unittest
import unittest.mock

import numpy
from program import PROGRAM, SECONDS_TO_END, ProgramTest

RUN = """model: cosmoflow
input: 4x16x16x16
settings: {dropout: 0}
mini_batch: 2
steps: 6
optimizer: {kind: sgd, momentum: 0.9}
learning_rate: 0.001
data: {kind: synthetic, samples: 4}
threads: 2
output: out
"""


class Commands(ProgramTest):
    def test_train_leaves_a_run_directory(self):
        self.write("run.yaml", RUN)
        text = self.expect_success("train", "run.yaml", "steps=4", "--trace", "trace.json")

        self.assertIn("weights     out/weights.safetensors", text)
        self.assertEqual(sorted(os.listdir(self.folder / "out")), ["log.txt", "metrics.csv", "plan.json", "run.yaml", "weights.safetensors"])
        rows = list(csv.DictReader((self.folder / "out/metrics.csv").read_text().splitlines()))
        self.assertEqual([row["step"] for row in rows], ["1", "2", "3", "4"])
        self.assertEqual([row["epoch"] for row in rows], ["1", "1", "2", "2"])
        trace = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        steps = [event for event in trace if event["ph"] == "X"]
        self.assertTrue({"implementation", "flops", "buffers"} <= set(steps[0]["args"]))
        self.expect_error(74, "holds a run already", "train", "run.yaml")

    def test_merged_run_file_repeats_the_run(self):
        self.write("run.yaml", RUN)
        first = json.loads(self.expect_success("train", "run.yaml", "steps=3", "--json"))
        second = json.loads(self.expect_success("train", "out/run.yaml", "output=again", "--json"))
        self.assertEqual(first["last_loss"], second["last_loss"])
        self.assertEqual(second["directory"], "again")

    def test_measures_convolutions_once_and_says_so(self):
        self.write("run.yaml", RUN + "overwrite: true\n")
        environment = {**os.environ, "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive", "ORTHANT_CACHE": "kernels.json"}

        def measuring_lines():
            result = subprocess.run([PROGRAM, "train", "run.yaml"], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=110)
            self.assertEqual(result.returncode, 0, result.stderr)
            return [line for line in result.stderr.splitlines() if line.startswith("measur")]

        lines = measuring_lines()
        tasks = int(re.fullmatch(r"measuring (\d+) convolutions on this machine, once; at most 20 s or a tenth of the first epoch", lines[0])[1])
        measured = re.match(r"measured (\d+) of (\d+) convolutions in [\d.]+ s", lines[-1])
        self.assertEqual(int(measured[2]), tasks)
        (entries,) = json.loads((self.folder / "kernels.json").read_text())["machines"].values()
        self.assertEqual(len(entries), int(measured[1]))
        for entry in entries.values():
            self.assertEqual([sorted(one) for one in entry], [["algorithm", "seconds", "workspace_bytes"]])
            self.assertGreater(entry[0]["seconds"], 0)
        if len(entries) == tasks:
            self.assertEqual(measuring_lines(), [])

    def test_a_plan_file_repeats_the_kernels_without_the_cache(self):
        """Kernels other than the rule's and than what measuring would find, in every pass, so that nothing agrees by chance."""
        bench = ("bench", "step", "unet3d", "--input", "1x16x16x16", "--set", "width=8", "--steps", "1", "--layers", "--json")

        def implementations(*arguments):
            layers = json.loads(self.expect_success(*bench, *arguments))["layers"]
            return [(layer["name"], layer["implementation"]) for layer in layers]

        with unittest.mock.patch.dict(os.environ, ORTHANT_CACHE="kernels.json"):
            for ranks in (1, 2):
                threads = ("--threads", 2 // ranks)
                first = implementations("--ranks", ranks, *threads, "--write-plan", "measured.json")
                plan = json.loads((self.folder / "measured.json").read_text())
                chosen = [node["kernels"] for node in plan["nodes"] if "kernels" in node]
                self.assertTrue(chosen)
                for choice in (choice for node in chosen for choice in node.values()):
                    self.assertIn(choice["algorithm"], ("winograd", "direct", "matrix", "onednn"))
                (self.folder / "kernels.json").unlink(missing_ok=True)
                self.assertEqual(implementations("--plan", "measured.json", *threads), first)
                self.assertFalse((self.folder / "kernels.json").exists(), "a plan that says everything was measured again")

                others = implementations("--ranks", ranks, *threads, "--algorithm", "direct", "--write-plan", "direct.json")
                self.assertNotEqual(others, implementations("--ranks", ranks, *threads, "--algorithm", "rule"))
                self.assertEqual(implementations("--plan", "direct.json", *threads), others)

    def test_train_writes_the_plan_it_followed(self):
        self.write("run.yaml", RUN)
        self.expect_success("train", "run.yaml", "steps=2", "--algorithm", "direct")
        self.expect_success("train", "run.yaml", "steps=2", "output=again", "--plan", "out/plan.json", "--trace", "trace.json")

        self.assertEqual((self.folder / "out/plan.json").read_text(), (self.folder / "again/plan.json").read_text())
        events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        convolutions = {event["args"]["implementation"] for event in events if event["ph"] == "X" and event["name"].startswith("conv1.")}
        self.assertTrue(any(name.startswith("orthant:direct") for name in convolutions), convolutions)

        plan = json.loads((self.folder / "out/plan.json").read_text())
        for node in plan["nodes"]:
            if node["node"] == "conv1":
                node["kernels"]["forward"]["algorithm"] = "matrix"
        self.write("wrong.json", json.dumps(plan))
        self.expect_error(71, "plan: conv1 forward asks for matrix, which cannot run this convolution on this machine; use ",
                          "train", "run.yaml", "output=wrong", "--plan", "wrong.json")
        self.assertFalse((self.folder / "wrong").exists())

    def test_interrupted_run_saves_its_weights(self):
        self.write("run.yaml", RUN.replace("steps: 6", "steps: 1000000"))
        process = subprocess.Popen([PROGRAM, "train", "run.yaml"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        metrics = self.folder / "out/metrics.csv"
        deadline = time.monotonic() + SECONDS_TO_END
        while time.monotonic() < deadline and not (metrics.exists() and len(metrics.read_text().splitlines()) > 2):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS_TO_END)
        self.assertEqual(process.returncode, 85, errors)
        self.assertIn("error: stopped by a signal after step", errors)
        self.assertTrue((self.folder / "out/weights.safetensors").exists())

    def test_step_writes_loss_output_and_gradients(self):
        numpy.save(self.folder / "x.npy", numpy.random.default_rng(0).standard_normal((2, 4, 16, 16, 16), "f4"))
        numpy.save(self.folder / "y.npy", numpy.zeros((2, 4), "f4"))
        arguments = ["step", "cosmoflow", "--set", "dropout=0", "--input", "x.npy", "--target", "y.npy", "--seed", "3"]
        printed = json.loads(self.expect_success(*arguments, "--dump", "out", "--input-gradient", "--json"))
        result = json.loads((self.folder / "out/result.json").read_text())

        self.assertEqual(printed, result)
        self.assertGreater(result["loss"], 0)
        self.assertEqual(result["terms"][0]["kind"], "mean_squared_error")
        self.assertEqual(self.tensors("out/outputs.safetensors")["output"]["shape"], [2, 4])
        gradients = self.tensors("out/gradients.safetensors")
        self.assertEqual(gradients["input"]["shape"], [2, 4, 16, 16, 16])
        self.assertIn("conv1.weight", gradients)
        self.expect_success(*arguments, "--dump", "evaluated", "--evaluate")
        self.assertEqual(sorted(os.listdir(self.folder / "evaluated")), ["outputs.safetensors", "result.json"])

    def tensors(self, name):
        content = (self.folder / name).read_bytes()
        return json.loads(content[8:8 + int.from_bytes(content[:8], "little")])

    def test_bench_step_has_the_documented_figures(self):
        figures = json.loads(self.expect_success("bench", "step", "cosmoflow", "--input", "4x16x16x16", "--batch", "2", "--threads", "2", "--steps", "3", "--layers", "--json"))

        for key in ("seconds_best", "seconds_median", "gflops", "peak_share", "arena_bytes", "peak_rss_bytes", "exposed_communication_seconds", "bytes_sent"):
            self.assertIn(key, figures)
        self.assertLessEqual(figures["seconds_best"], figures["seconds_median"])
        self.assertEqual(figures["arena_bytes"], figures["allocated_bytes"])
        self.assertIn(figures["allocations_in_steady_state"], (0, None))
        self.assertGreater(len(figures["layers"]), 20)
        text = self.expect_success("bench", "step", "cosmoflow", "--input", "4x16x16x16", "--steps", "1", "--layers", "--optimizer", "adam", "--trace", "trace.json")
        self.assertIn("after warm-up" if figures["allocations_in_steady_state"] == 0 else "peak memory", text)
        self.assertTrue((self.folder / "trace.json").exists())

    def test_bench_step_names_the_instruction_set(self):
        bench = ("bench", "step", "cosmoflow", "--input", "4x16x16x16", "--steps", "1", "--algorithm", "direct")
        self.assertIn(json.loads(self.expect_success(*bench, "--json"))["instruction_set"], ("avx3", "avx2", "sse4", "scalar"))

        with unittest.mock.patch.dict(os.environ, ORTHANT_MAX_ISA="sse4"):
            figures = json.loads(self.expect_success(*bench, "--layers", "--json"))
            self.assertEqual(figures["instruction_set"], "sse4")
            own = [layer["implementation"] for layer in figures["layers"] if layer["implementation"].startswith("orthant:direct")]
            self.assertTrue(own and all(":sse4:" in name for name in own), own)
            self.assertIn("instruction set   sse4\n", self.expect_success(*bench))
        for ranks in (1, 2):
            with unittest.mock.patch.dict(os.environ, ORTHANT_MAX_ISA="avx22"):
                self.expect_error(64, "ORTHANT_MAX_ISA is 'avx22', which names no instruction set; did you mean 'avx2'?", *bench, "--ranks", ranks)

    def test_bench_kernels_marks_what_runs(self):
        kernels = json.loads(self.expect_success("bench", "kernels", "cosmoflow", "--input", "4x16x16x16", "--layer", "conv2", "--seconds", "0", "--json"))["kernels"]

        chosen = [kernel["step"] for kernel in kernels if kernel["chosen"]]
        self.assertEqual(sorted(chosen), ["conv2.backward_data", "conv2.backward_weights", "conv2.forward"])
        self.assertIn("*", self.expect_success("bench", "kernels", "cosmoflow", "--input", "4x16x16x16", "--layer", "conv2.forward", "--seconds", "0"))

    def test_doctor_finds_the_libraries(self):
        found = {finding["what"]: finding for finding in json.loads(self.expect_success("doctor", "--json"))["findings"]}

        self.assertRegex(found["oneDNN"]["found"], r"^\d+\.\d+")
        self.assertIn("memory", self.expect_success("doctor"))


if __name__ == "__main__":
    unittest.main()
