"""Checkpoints under crashes and errors of the system: at no point of a run is there no good checkpoint.

usage: crashes_test.py PROGRAM SHIM
"""

import errno
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from program import PROGRAM, ProgramTest

SHIM = pathlib.Path(sys.argv.pop(1)).resolve()
NETWORK = """name: small
input: 2x4x4x4
layers:
  - {name: conv1, op: conv, filters: 4, kernel: 3, pad: 1}
  - {name: norm1, op: batch_norm}
  - {name: act1, op: relu}
  - {name: flatten, op: flatten}
  - {name: fc1, op: dense, features: 4}
loss: mean_squared_error
"""
RUN = """model: net.yaml
mini_batch: 2
steps: 6
optimizer: adam
data: {kind: synthetic, samples: 8}
validation: {fraction: 0.25, every: 2}
checkpoint: {every: 2, keep: 2}
threads: 1
"""


class Crashes(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("net.yaml", NETWORK)
        self.write("run.yaml", RUN)
        # A run that stands before its last checkpoint, with which the oldest one goes.
        self.expect_success("train", "run.yaml", "output=start", "steps=5", "--algorithm", "rule")
        self.expect_success("train", "run.yaml", "output=whole", "--algorithm", "rule")
        self.weights = (self.folder / "whole/weights.safetensors").read_bytes()

    def go_on(self, environment=None):
        """Exit code, summary and stderr of the run that goes on in `out`."""
        command = [PROGRAM, "train", "run.yaml", "output=out", "--resume", "--json", "--algorithm", "rule"]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120,
                                env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})})
        return result.returncode, json.loads(result.stdout) if result.stdout else None, result.stderr

    def begin_again(self):
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        shutil.copytree(self.folder / "start", self.folder / "out")

    def calls(self):
        self.begin_again()
        listing = self.folder / "calls"
        listing.unlink(missing_ok=True)
        code, _, errors = self.go_on({"LD_PRELOAD": str(SHIM), "ORTHANT_TEST_CRASH": "0", "ORTHANT_TEST_CALLS": str(listing)})
        self.assertEqual(code, 0, errors)
        return [line.split() for line in listing.read_text().splitlines()]

    def test_a_good_checkpoint_is_there_after_every_crash(self):
        calls = self.calls()
        self.assertGreaterEqual({name for name, _ in calls}, {"open", "write", "mkdir", "fsync", "rename", "unlinkat", "link"})
        for number, (name, path) in enumerate(calls, 1):
            with self.subTest(call=number, name=name, path=path):
                self.begin_again()
                code, _, _ = self.go_on({"LD_PRELOAD": str(SHIM), "ORTHANT_TEST_CRASH": str(number)})
                self.assertEqual(code, -9)
                code, summary, errors = self.go_on()
                self.assertEqual(code, 0, errors)
                self.assertIn(summary["resumed_step"], (5, 6))
                self.assertEqual((self.folder / "out/weights.safetensors").read_bytes(), self.weights)
                left = sorted(entry.name for entry in (self.folder / "out/checkpoints").iterdir())
                self.assertEqual(left, ["step-5", "step-6"] if summary["checkpoints"] else left)
                self.assertFalse([name for name in left if not name.startswith("step-") or name.endswith(".tmp")])

    def test_files_are_on_the_disk_before_the_manifest_and_it_before_the_name(self):
        calls = [(name, path) for name, path in self.calls() if "step-6" in path or path.endswith("checkpoints")]
        def last(name, ending):
            return max(i for i, (call, path) in enumerate(calls) if call == name and path.endswith(ending))
        renamed = last("rename", "step-6")
        self.assertLess(last("fsync", "shard-00000.safetensors"), last("write", "manifest.json"))
        self.assertLess(last("write", "manifest.json"), last("fsync", "manifest.json"))
        self.assertLess(last("fsync", "manifest.json"), last("fsync", "step-6.tmp"))
        self.assertLess(last("fsync", "step-6.tmp"), renamed)
        self.assertLess(renamed, last("fsync", "/checkpoints"))

    def test_errors_are_warnings_or_end_the_run(self):
        calls = self.calls()
        for number, (name, path) in enumerate(calls, 1):
            if name == "link" or not ("step-6.tmp" in path or path.endswith("step-6")):
                continue  # a link that fails becomes a copy
            for code in (errno.ENOSPC, errno.EIO):
                with self.subTest(call=number, name=name, path=path, error=os.strerror(code)):
                    environment = {"LD_PRELOAD": str(SHIM), "ORTHANT_TEST_CRASH": str(number), "ORTHANT_TEST_ERROR": str(code)}
                    self.begin_again()
                    returned, summary, errors = self.go_on(environment)
                    self.assertEqual(returned, 0, errors)
                    self.assertEqual(summary["checkpoint_step"], 5, errors)
                    self.assertRegex(errors, f"warning: no checkpoint of step 6: .*{os.strerror(code)}")
                    returned, summary, errors = self.go_on()
                    self.assertEqual((returned, summary["resumed_step"]), (0, 5), errors)
                if code == errno.ENOSPC and name == "write":
                    self.begin_again()
                    self.write("run.yaml", RUN + "on_checkpoint_error: abort\n")
                    returned, _, errors = self.go_on(environment)
                    self.write("run.yaml", RUN)
                    self.assertEqual(returned, 74, errors)
                    self.assertRegex(errors, "error: no checkpoint of step 6: cannot write '.*No space left")


if __name__ == "__main__":
    unittest.main()
