"""Runs that are killed at random times, again and again, end with the weights of one that was not.

usage: kills_test.py PROGRAM [KILLS]
"""

import collections
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

import h5py
import numpy
from program import PROGRAM, ProgramTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import SECONDS_TO_END, Job, until  # noqa: E402

KILLS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 30
SEED = int(os.environ.get("ORTHANT_TEST_SEED", "1"))
# Grid and ranks, and whether the samples come from HDF5 files and are kept in memory.
CASES = [("n1", 1, True), ("d2", 2, False), ("n2d2", 4, True), ("f2", 2, False), ("p2", 2, True)]
EVERY = 4
NETWORK = """name: small
input: 2x8x8x8
layers:
  - {name: conv1, op: conv, filters: 8, kernel: 3, pad: 1}
  - {name: norm1, op: batch_norm}
  - {name: act1, op: relu}
  - {name: conv2, op: conv, filters: 8, kernel: 3, pad: 1}
  - {name: act2, op: relu}
  - {name: flatten, op: flatten}
  - {name: drop1, op: dropout, rate: 0.2}
  - {name: fc1, op: dense, features: 4}
loss: mean_squared_error
"""
RUN = f"""model: net.yaml
mini_batch: 4
steps: 200
optimizer: adam
learning_rate: 0.001
checkpoint: {{every: {EVERY}, keep: 2}}
threads: 1
"""
DATA = {False: "data: {kind: synthetic, samples: 10}\n",
        True: "data: {kind: hdf5, files: data, store: memory, augment: {flip: [d, h, w]}}\n"}


class Kills(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("net.yaml", NETWORK)
        for stored, data in DATA.items():
            self.write(f"run-{stored}.yaml", RUN + data)
        (self.folder / "data").mkdir()
        numbers = numpy.random.default_rng(0)
        for i in range(10):
            with h5py.File(self.folder / f"data/{i}.h5", "w") as file:
                file["full"] = numbers.integers(0, 9, (8, 8, 8, 2)).astype("<i2")
                file["unitPar"] = numbers.random(4).astype("<f4")
        self.random = random.Random(SEED)
        self.report = collections.Counter()

    def command(self, case, output):
        grid, ranks, stored = case
        return [PROGRAM, "train", f"run-{stored}.yaml", f"output={output}", "--grid", grid, "--ranks", str(ranks), "--threads", "1",
                "--algorithm", "rule", "--resume", "auto", "--json"]

    def finish(self, case, output):
        begin = time.monotonic()
        with Job({"OMP_NUM_THREADS": "1"}) as job:
            process = subprocess.Popen(self.command(case, output), cwd=self.folder, env=job.environment, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            text, errors = job.run(process)
        self.assertEqual(process.returncode, 0, errors)
        return json.loads(text), time.monotonic() - begin

    def weights(self, output):
        return hashlib.sha256((self.folder / output / "weights.safetensors").read_bytes()).hexdigest()

    def checkpoints(self, output):
        folder = self.folder / output / "checkpoints"
        names = [path.name for path in folder.iterdir()] if folder.exists() else []
        return [int(name[5:]) for name in names if name[5:].isdigit()]

    def steps_done(self, output):
        metrics = self.folder / output / "metrics.csv"
        return max(0, len(metrics.read_text().splitlines()) - 1) if metrics.exists() else 0

    def kill_once(self, case, output, seconds):
        """Starts the run and kills all of it, a rank or mpirun after some time."""
        with Job({"OMP_NUM_THREADS": "1"}) as job:
            process = subprocess.Popen(self.command(case, output), cwd=self.folder, env=job.environment, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            # Half of the kills come soon after the first steps, when checkpoints are written, the others at any time.
            if self.random.random() < 0.5:
                before = self.steps_done(output)
                until(lambda: process.poll() is not None or self.steps_done(output) > before + 1, SECONDS_TO_END)
                time.sleep(self.random.random() * 0.3)
            else:
                time.sleep(self.random.random() * seconds)
            before = max(self.checkpoints(output), default=0)
            target = self.random.choice(["all", "rank", "command"])
            if process.poll() is not None:
                target = "ended"
            elif target == "rank" and case[1] > 1:
                try:
                    os.kill(job.rank(self.random.randrange(case[1])), signal.SIGKILL)
                except (StopIteration, ProcessLookupError):
                    job.kill()
            elif target == "command":
                process.kill()
            else:
                job.kill()
            job.run(process)
            until(lambda: not job.processes(), 30)
        self.report[target] += 1
        return before

    def test_runs_end_as_if_nothing_had_happened(self):
        per_case = -(-KILLS // len(CASES))
        for number, case in enumerate(CASES):
            expected, seconds = self.finish(case, f"whole-{number}")
            self.assertEqual(expected["steps"], 200)
            output = f"killed-{number}"
            for kill in range(per_case):
                with self.subTest(case=case, kill=kill, seed=SEED):
                    newest = self.kill_once(case, output, seconds)
                    done = self.steps_done(output)
                    # What was complete before the kill is still there.
                    self.assertGreaterEqual(max(self.checkpoints(output), default=0), newest)
                    self.report["steps lost"] = max(self.report["steps lost"], done - max(self.checkpoints(output), default=0))
                if done >= 200 and max(self.checkpoints(output), default=0) >= 200:
                    self.finish(case, output)
                    self.assertEqual(self.weights(output), self.weights(f"whole-{number}"), case)
                    output += "x"
            summary, _ = self.finish(case, output)
            self.assertEqual(summary["steps"], 200)
            self.assertEqual(self.weights(output), self.weights(f"whole-{number}"), case)
            self.report["runs compared"] += 1
        print(dict(self.report))


if __name__ == "__main__":
    unittest.main()
