"""Runs that are killed at random times, again and again, end with the weights of one that was not.

usage: kills_test.py PROGRAM [KILLS]
"""

import collections
import concurrent.futures
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

from program import PROGRAM, ProgramTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import SECONDS_TO_END, Job, until  # noqa: E402
from runs import RunFolder, write_run, write_samples  # noqa: E402

KILLS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 30
SEED = int(os.environ.get("ORTHANT_TEST_SEED", "1"))
# Several runs at a time: most of a cycle is waiting for processes to come and go.
AT_ONCE = 3
INTERVALS = 10
# Steps between checkpoints: a few tens of milliseconds, longer than one takes to be written on a machine that does nothing else.
EVERY = {1: 500, 2: 50, 3: 50, 4: 30}
GRIDS = [("n1", 1), ("d2", 2), ("n2d2", 4), ("f2", 2), ("p2", 2), ("f3", 3)]
# Samples that are read in every step, and samples that are kept in memory.
STORES = ["off", "memory"]
TARGETS = ["all", "rank", "mpirun", "command"]


class Chain:
    """A run of one plan that is killed until it has been killed often enough, and begun again when it has ended."""

    def __init__(self, folder, grid, ranks, store):
        self.folder, self.grid, self.ranks, self.store = folder, grid, ranks, store
        self.name = f"{grid}-{store}"
        self.every = EVERY[ranks]
        self.steps = INTERVALS * self.every
        self.random = random.Random(f"{SEED} {self.name}")
        self.report = collections.Counter()
        self.errors = []
        self.whole = RunFolder(folder / f"{self.name}-whole")
        self.seconds = self.finish(self.whole)

    def start(self, job, run):
        command = [PROGRAM, "train", f"run-{self.store}.yaml", f"output={run.path}", f"steps={self.steps}", f"checkpoint.every={self.every}", "--grid", self.grid, "--ranks", str(self.ranks),
                   "--threads", "1", "--algorithm", "rule", "--resume", "auto"]
        return subprocess.Popen(command, cwd=self.folder, env=job.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, run):
        """Lets the run end; returns the seconds that it took."""
        begin = time.monotonic()
        with Job({"OMP_NUM_THREADS": "1"}) as job:
            process = self.start(job, run)
            _, errors = job.run(process)
        if process.returncode != 0 or run.steps() != self.steps:
            self.errors.append(f"{self.name}: code {process.returncode} after step {run.steps()}: {errors}")
        return time.monotonic() - begin

    def hit(self, job, process, target):
        """Kills what is named, or all of it where there is no such process; returns what it killed."""
        try:
            if process.poll() is not None:
                return "ended by itself"
            if target == "command" or self.ranks == 1:
                process.kill()
            elif target == "all":
                job.kill()
            else:
                os.kill(job.rank(self.random.randrange(self.ranks)) if target == "rank" else job.child(process.pid), signal.SIGKILL)
            return target
        except (StopIteration, ProcessLookupError):
            job.kill()
            return "all"

    def kill_once(self, run, target):
        with Job({"OMP_NUM_THREADS": "1"}) as job:
            process = self.start(job, run)
            before = run.steps()
            # Half of the kills come soon after the first steps, when checkpoints are written, the others at any time.
            if self.random.random() < 0.5:
                until(lambda: process.poll() is not None or run.steps() > before + 1, SECONDS_TO_END, 0.002)
                time.sleep(self.random.random() * 0.1)
            else:
                time.sleep(self.random.random() * self.seconds)
            newest = run.newest()
            target = self.hit(job, process, target)
            job.run(process)
            gone = until(lambda: not job.processes(), 30)
            left = [] if target in ("all", "ended by itself") else job.files()
        self.report[target] += 1
        lost = run.steps() - run.newest()
        self.report["most steps lost"] = max(self.report["most steps lost"], lost)
        self.report["more than one interval lost"] += lost > self.every
        if not gone or left or run.newest() < newest:
            self.errors.append(f"{self.name}, {target} killed: processes gone {gone}, left {left}, checkpoints {newest} -> {run.newest()}")

    def kill(self, times):
        number = 0
        for i in range(times):
            run = RunFolder(self.folder / f"{self.name}-{number}")
            self.kill_once(run, TARGETS[i % len(TARGETS)])
            if i + 1 < times and run.newest() < self.steps:
                continue
            self.finish(run)
            self.report["runs compared"] += 1
            if run.weights() != self.whole.weights():
                self.errors.append(f"{run.path}: other weights than those of a run that was not killed")
            number += 1
        return self


class Kills(ProgramTest):
    def test_runs_end_as_if_nothing_had_happened(self):
        write_samples(self.folder / "data")
        for store in STORES:
            write_run(self.folder, f"run-{store}.yaml", checkpoint="{every: 1, keep: 2}",
                      data=f"{{kind: hdf5, files: data, store: {store}, augment: {{flip: [d, h, w]}}}}")
        cases = [(*grid, store) for grid in GRIDS for store in STORES]
        shares = [KILLS // len(cases) + (i < KILLS % len(cases)) for i in range(len(cases))]
        report = collections.Counter()
        errors = []
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for chain in pool.map(lambda case, share: Chain(self.folder, *case).kill(share), cases, shares):
                most = max(report["most steps lost"], chain.report["most steps lost"])
                report += chain.report
                report["most steps lost"] = most
                errors += chain.errors
        print(f"seed {SEED}:", dict(report))
        self.assertEqual(len(errors), 0, "\n".join(errors))


if __name__ == "__main__":
    unittest.main()
