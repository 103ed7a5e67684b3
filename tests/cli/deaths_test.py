"""Ranks that die anywhere, start-up included: how long it takes until the job is gone, and what it says.

usage: deaths_test.py PROGRAM SHIM [DEATHS]
"""

import concurrent.futures
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import unittest

import numpy
from program import PROGRAM, ProgramTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import SECONDS_TO_END, Job, clock, until  # noqa: E402
from runs import write_run  # noqa: E402

SHIM = pathlib.Path(sys.argv.pop(1)).resolve()
DEATHS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 100
SEED = int(os.environ.get("ORTHANT_TEST_SEED", "1"))
AT_ONCE = 2
RANKS = 3
# A call, and how many of them a rank makes at least.
CALLS = [("MPI_Init_thread", 1), ("MPI_Allreduce", 4), ("pread", 3), ("MPI_Iallreduce", 5), ("MPI_Startall", 60)]
CODES = {"kill": 137, "exit": 3, "error": 74}


class Death:
    def __init__(self, folder, number):
        chosen = random.Random(f"{SEED} {number}")
        call, most = CALLS[number % len(CALLS)]
        self.rank = chosen.randrange(RANKS)
        self.fault = chosen.choice(sorted(CODES))
        self.place = f"{self.rank} {call} {chosen.randint(1, most)} {self.fault}"
        self.folder, self.number = folder, number
        self.seconds, self.wrong = 0, ""

    def happen(self):
        mark = self.folder / f"mark-{self.number}"
        with Job({"OMP_NUM_THREADS": "1", "LD_PRELOAD": str(SHIM), "ORTHANT_TEST_FAULT": self.place, "ORTHANT_TEST_MARK": str(mark)}) as job:
            process = subprocess.Popen([PROGRAM, "train", "run.yaml", f"output=out-{self.number}", "--grid", "f3", "--threads", "1", "--algorithm", "rule"],
                                       cwd=self.folder, env=job.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            until(lambda: mark.exists() or process.poll() is not None, SECONDS_TO_END, 0.005)
            begin = clock.now()
            _, errors = job.run(process)
            gone = until(lambda: not job.processes(), 30, 0.01)
            self.seconds = clock.now() - begin
            left = job.files()
        lines = [line for line in errors.splitlines() if line.startswith("error: ")]
        who = rf"rank {self.rank}\b"
        if self.fault != "error":
            who += r" \(pid \d+\)"
        if self.fault != "error" and "Init" in self.place:
            who += rf" on host '{re.escape(socket.gethostname())}'"
        if process.returncode != CODES[self.fault] or len(lines) != 1 or not re.search(who, lines[0]) or not gone or left:
            self.wrong = f"{self.place}: code {process.returncode}, {errors}, gone {gone}, left {left}"
        return self


class Deaths(ProgramTest):
    def test_the_job_is_gone_soon_and_the_line_names_the_rank(self):
        # Each rank reads 1 KiB or more, which the shim takes for a sample.
        numpy.save(self.folder / "x.npy", numpy.random.default_rng(0).standard_normal((4, 2, 16, 16, 16), "f4"))
        numpy.save(self.folder / "y.npy", numpy.zeros((4, 4), "f4"))
        write_run(self.folder, input="2x16x16x16", mini_batch=1, steps=12, save_every=1, checkpoint="{every: 1}",
                  data="{kind: npy, inputs: x.npy, targets: y.npy, store: off}")
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            deaths = list(pool.map(lambda number: Death(self.folder, number).happen(), range(DEATHS)))
        seconds = sorted(death.seconds for death in deaths)
        print(f"{DEATHS} deaths: median {seconds[len(seconds) // 2]:.2f} s, 99th of 100 {seconds[(len(seconds) - 1) * 99 // 100]:.2f} s, last {seconds[-1]:.2f} s")
        wrong = [death.wrong for death in deaths if death.wrong]
        self.assertEqual(len(wrong), 0, "\n".join(wrong))


if __name__ == "__main__":
    unittest.main()
