"""Runs that are told to stop: by a signal to a rank, to all ranks, to the mpirun that was started by hand, or to the command; with
steps that are short and steps that are long. All end with a checkpoint of the last step, and with code 85; only mpirun, told
itself, returns 1 whatever its ranks do.

usage: signals_test.py PROGRAM SHIM [SIGNALS]
"""

import collections
import concurrent.futures
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import time

import numpy
from program import PROGRAM, ProgramTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import SECONDS_TO_END, Job, clock, until  # noqa: E402
from runs import RunFolder, write_run  # noqa: E402

SHIM = pathlib.Path(sys.argv.pop(1)).resolve()
SIGNALS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 12
SEED = int(os.environ.get("ORTHANT_TEST_SEED", "1"))
AT_ONCE = int(os.environ.get("ORTHANT_TEST_AT_ONCE", "4"))
GRIDS = {1: "n1", 2: "d2", 3: "f3", 4: "n2d2"}
PATHS = ["rank", "all", "mpirun", "command"]
# Of a read; a step has several, so that the longer ones take more than the two seconds that Open MPI leaves to ranks.
MILLISECONDS = [20, 2500]


class Trial:
    """One run that gets one signal."""

    def __init__(self, folder, number):
        self.random = random.Random(f"{SEED} {number}")
        self.path = PATHS[number % len(PATHS)]
        self.milliseconds = MILLISECONDS[number // len(PATHS) % len(MILLISECONDS)]
        self.ranks = 1 + number // (len(PATHS) * len(MILLISECONDS)) % len(GRIDS)
        self.signal = self.random.choice([signal.SIGTERM, signal.SIGINT, signal.SIGUSR1] if self.path != "mpirun" else [signal.SIGTERM, signal.SIGINT])
        self.folder = folder
        self.run = RunFolder(folder / f"out-{number}")
        self.error = ""
        self.seconds = 0

    def __str__(self):
        return f"{self.signal.name} to {self.path}, {self.ranks} ranks, reads of {self.milliseconds} ms"

    def start(self, job):
        words = [PROGRAM, "train", "run.yaml", f"output={self.run.path}", "--threads", "1", "--algorithm", "rule", "--grid", GRIDS[self.ranks]]
        if self.path == "mpirun":
            words = ["mpirun", "--quiet", "--oversubscribe", "--bind-to", "none", "-np", str(self.ranks), *words]
        return subprocess.Popen(words, cwd=self.folder, env=job.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def tell(self, job, process):
        if self.path in ("mpirun", "command") or self.ranks == 1:
            process.send_signal(self.signal)
        else:
            for rank in range(self.ranks) if self.path == "all" else [self.random.randrange(self.ranks)]:
                os.kill(job.rank(rank), self.signal)

    def try_it(self):
        environment = {"OMP_NUM_THREADS": "1", "LD_PRELOAD": str(SHIM), "ORTHANT_TEST_SLOW_READ": str(self.milliseconds),
                       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
        with Job(environment) as job:
            process = self.start(job)
            until(lambda: process.poll() is not None or self.run.steps() > 0, SECONDS_TO_END)
            time.sleep(self.random.random() * self.milliseconds / 1000)
            before = self.run.steps()
            begin = clock.now()
            try:
                self.tell(job, process)
            except (StopIteration, ProcessLookupError):
                job.kill()
            _, errors = job.run(process)
            self.seconds = clock.now() - begin
            gone = until(lambda: not job.processes(), 30)
            left = job.files()
        code = 1 if self.path == "mpirun" else 85
        checks = {f"exit code {process.returncode}": process.returncode == code,
                  f"'{errors}'": "stopped by a signal after step" in errors,
                  f"checkpoints {self.run.checkpoints()} after step {self.run.steps()}": self.run.newest() == self.run.steps() >= before,
                  "processes are left": gone,
                  f"{left} are left": not left}
        wrong = [text for text, holds in checks.items() if not holds]
        if wrong:
            self.error = f"{self}: {'; '.join(wrong)}"
        return self


class Signals(ProgramTest):
    def test_a_checkpoint_of_the_last_step_is_left(self):
        # 1 KiB or more per rank, which the shim takes for a sample.
        numpy.save(self.folder / "x.npy", numpy.random.default_rng(0).standard_normal((4, 2, 16, 16, 16), "f4"))
        numpy.save(self.folder / "y.npy", numpy.zeros((4, 4), "f4"))
        write_run(self.folder, input="2x16x16x16", mini_batch=2, steps=1000000, data="{kind: npy, inputs: x.npy, targets: y.npy, store: off}")
        seconds = collections.defaultdict(list)
        errors = []
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for trial in pool.map(lambda number: Trial(self.folder, number).try_it(), range(SIGNALS)):
                seconds[trial.path, trial.milliseconds].append(trial.seconds)
                print(f"{trial}: {trial.error or 'in order'}, {trial.seconds:.2f} s", flush=True)
                errors += [trial.error] if trial.error else []
        for (path, milliseconds), all_of in sorted(seconds.items()):
            print(f"{path:8} reads of {milliseconds:4} ms: {len(all_of):3} signals, median {statistics.median(all_of):.2f} s, at most {max(all_of):.2f} s")
        self.assertEqual(len(errors), 0, "\n".join(errors))


if __name__ == "__main__":
    import unittest

    unittest.main()
