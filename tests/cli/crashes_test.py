"""Checkpoints under crashes and errors of the system: at no point of a run is there no good checkpoint.

usage: crashes_test.py PROGRAM SHIM [all]; `all` tries several ranks, too.
"""

import concurrent.futures
import errno
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from program import PROGRAM, ProgramTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import Job, until  # noqa: E402
from runs import RunFolder, write_run  # noqa: E402

SHIM = pathlib.Path(sys.argv.pop(1)).resolve()
ALL = "all" in sys.argv
sys.argv = [word for word in sys.argv if word != "all"]
GRIDS = [("n1", 1)] + ([("d2", 2), ("n2d2", 4)] if ALL else [])
AT_ONCE = 2
RUN = {"mini_batch": 2, "steps": 6, "data": "{kind: synthetic, samples: 8}", "validation": "{fraction: 0.25, every: 2}",
       "checkpoint": "{every: 2, keep: 2}"}


class Plan:
    """A run of one plan that stands before its last checkpoint, with which the oldest one goes."""

    def __init__(self, folder, grid, ranks):
        self.folder, self.grid, self.ranks = folder, grid, ranks
        self.start = folder / f"start-{grid}"
        whole = folder / f"whole-{grid}"
        for output, steps in ((self.start, 5), (whole, 6)):
            code, _, errors = self.run(output, f"steps={steps}")
            assert code == 0, errors
        self.weights = RunFolder(whole).weights()

    def run(self, output, *words, environment=None):
        """Exit code, summary and stderr."""
        command = [PROGRAM, "train", "run.yaml", f"output={output}", "--json", "--algorithm", "rule", "--threads", "1", "--grid", self.grid, *words]
        with Job({"OMP_NUM_THREADS": "1", **(environment or {})}) as job:
            process = subprocess.Popen(command, cwd=self.folder, env=job.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            text, errors = job.run(process)
            until(lambda: not job.processes(), 30)
        return process.returncode, json.loads(text) if text else None, errors

    def begin_again(self, name="out"):
        output = self.folder / f"{name}-{self.grid}"
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(self.start, output)
        return output

    def shim(self, number, rank, **more):
        return {"LD_PRELOAD": str(SHIM), "ORTHANT_TEST_CRASH": str(number), **({"ORTHANT_TEST_RANK": str(rank)} if self.ranks > 1 else {}), **more}

    def calls(self, rank=0):
        """What a rank calls when the run goes on."""
        listing = self.folder / f"calls-{self.grid}-{rank}"
        code, _, errors = self.run(self.begin_again(), "--resume", environment=self.shim(0, rank, ORTHANT_TEST_CALLS=str(listing)))
        assert code == 0, errors
        return [line.split() for line in listing.read_text().splitlines()]

    def crash(self, rank, number):
        """Kills a rank in front of a call, and goes on; returns what is wrong then."""
        output = self.begin_again(f"out-{rank}-{number}")
        code, _, _ = self.run(output, "--resume", environment=self.shim(number, rank))
        # Of several ranks one may be done when it is killed.
        killed = code == (-9 if self.ranks == 1 else 137)
        code, summary, errors = self.run(output, "--resume")
        left = sorted(entry.name for entry in (output / "checkpoints").iterdir())
        checks = [killed, code == 0, summary and summary["resumed_step"] in (5, 6), RunFolder(output).weights() == self.weights,
                  not summary or not summary["checkpoints"] or left == ["step-5", "step-6"],
                  all(name.startswith("step-") and not name.endswith(".tmp") for name in left)]
        shutil.rmtree(output)
        return "" if all(checks) else f"{checks}, {left}: {errors}"


class Crashes(ProgramTest):
    def setUp(self):
        super().setUp()
        write_run(self.folder, **RUN)

    def test_a_good_checkpoint_is_there_after_every_crash(self):
        for grid, ranks in GRIDS:
            plan = Plan(self.folder, grid, ranks)
            calls = [(rank, number, call) for rank in range(ranks) for number, call in enumerate(plan.calls(rank), 1)]
            self.assertGreaterEqual({name for _, _, (name, _) in calls}, {"open", "write", "mkdir", "fsync", "rename", "unlinkat", "link"})
            with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
                wrong = list(pool.map(lambda call: plan.crash(call[0], call[1]), calls))
            for (rank, number, (name, path)), text in zip(calls, wrong):
                with self.subTest(grid=grid, rank=rank, call=number, name=name, path=path):
                    self.assertEqual(text, "")
            print(f"{grid}: {len(calls)} calls of {ranks} ranks")

    def test_files_are_on_the_disk_before_the_manifest_and_it_before_the_name(self):
        calls = [(name, path) for name, path in Plan(self.folder, "n1", 1).calls() if "step-6" in path or path.endswith("checkpoints")]
        def last(name, ending):
            return max(i for i, (call, path) in enumerate(calls) if call == name and path.endswith(ending))
        renamed = last("rename", "step-6")
        self.assertLess(last("fsync", "shard-00000.safetensors"), last("write", "manifest.json"))
        self.assertLess(last("write", "manifest.json"), last("fsync", "manifest.json"))
        self.assertLess(last("fsync", "manifest.json"), last("fsync", "step-6.tmp"))
        self.assertLess(last("fsync", "step-6.tmp"), renamed)
        self.assertLess(renamed, last("fsync", "/checkpoints"))

    def test_errors_are_warnings_or_end_the_run(self):
        plan = Plan(self.folder, "n1", 1)
        calls = plan.calls()
        for number, (name, path) in enumerate(calls, 1):
            if name == "link" or not ("step-6.tmp" in path or path.endswith("step-6")):
                continue  # a link that fails becomes a copy
            for code in (errno.ENOSPC, errno.EIO):
                with self.subTest(call=number, name=name, path=path, error=os.strerror(code)):
                    environment = plan.shim(number, 0, ORTHANT_TEST_ERROR=str(code))
                    output = plan.begin_again()
                    returned, summary, errors = plan.run(output, "--resume", environment=environment)
                    self.assertEqual(returned, 0, errors)
                    self.assertEqual(summary["checkpoint_step"], 5, errors)
                    self.assertRegex(errors, f"warning: no checkpoint of step 6: .*{os.strerror(code)}")
                    returned, summary, errors = plan.run(output, "--resume")
                    self.assertEqual((returned, summary["resumed_step"]), (0, 5), errors)
                if code == errno.ENOSPC and name == "write":
                    returned, _, errors = plan.run(plan.begin_again(), "--resume", "on_checkpoint_error=abort", environment=environment)
                    self.assertEqual(returned, 74, errors)
                    self.assertRegex(errors, "error: no checkpoint of step 6: cannot write '.*No space left")


if __name__ == "__main__":
    unittest.main()
