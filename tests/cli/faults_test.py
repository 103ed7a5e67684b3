"""One rank of a training run fails in each phase: the job ends soon, one line names rank and place, nothing is left behind.

usage: faults_test.py PROGRAM SHIM [all]; `all` tries every fault in every phase and on every rank.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import numpy
from program import PROGRAM, ProgramTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import SECONDS_TO_END, Job, until  # noqa: E402

SHIM = pathlib.Path(sys.argv.pop(1)).resolve()
ALL = "all" in sys.argv
sys.argv = [word for word in sys.argv if word != "all"]
RANKS = 3
PHASES = ("start", "read", "vote", "halo", "reduction", "update")
FAULTS = ("error", "exit", "kill", "stop")
RUN = """model: cosmoflow
input: 4x32x32x32
mini_batch: 1
steps: 6
save_every: 1
data: {kind: npy, inputs: x.npy, targets: y.npy}
"""
# What a run that ended early may leave, all of it complete.
FILES = {".lock", "checkpoints", "log.txt", "metrics.csv", "plan.json", "run.yaml", "weights.safetensors"}
# phase -> exit code and line for a call that fails
ERRORS = {
    "start": (74, r"rank {}: MPI_Allreduce"),
    "read": (74, r"rank {}: cannot read 'x.npy'"),
    "vote": (74, r"rank {}: MPI_Iallreduce"),
    "halo": (74, r"rank {}: conv2_act\.halo\.start: MPI_Startall"),
    "reduction": (74, r"rank {}: conv3\.weight\.reduce\.start: MPI_Startall"),
    "update": (74, r"rank {}: conv3\.weight\.spread\.start: MPI_Startall"),
}


class Faults(ProgramTest):
    def setUp(self):
        super().setUp()
        random = numpy.random.default_rng(0)
        numpy.save(self.folder / "x.npy", random.standard_normal((4, 4, 32, 32, 32), "f4"))
        numpy.save(self.folder / "y.npy", numpy.zeros((4, 4), "f4"))
        self.write("run.yaml", RUN)

    def run_job(self, output, *arguments, fault="", watchdog_seconds=None):
        """Exit code and stderr of a training run that ends and leaves no process and no file of Open MPI behind."""
        environment = {"OMP_NUM_THREADS": "1", "LD_PRELOAD": str(SHIM), "ORTHANT_TEST_FAULT": fault}
        if watchdog_seconds is not None:
            environment["ORTHANT_WATCHDOG_SECONDS"] = str(watchdog_seconds)
        command = [PROGRAM, "train", "run.yaml", f"output={output}", "--grid", f"d{RANKS}", "--threads", "1", *arguments]
        with Job(environment) as job:
            process = subprocess.Popen(command, cwd=self.folder, env=job.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            _, errors = job.run(process)
            job.expect_nothing_left(self)
        return process.returncode, errors

    def places(self):
        """phase -> call and which of its calls, per rank, as a run without faults shows them. In the second step: the
        weights of the first are saved then."""
        code, errors = self.run_job("clean", "steps=2", "--trace", "trace.json")
        self.assertEqual(code, 0, errors)
        events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        places = []
        for rank in range(RANKS):
            starts = [e["name"] for e in events if e["ph"] == "X" and e["pid"] == rank and e["args"].get("implementation") == "start"]
            last = lambda name: ("MPI_Startall", len(starts) - starts[::-1].index(name))
            places.append({"start": ("MPI_Allreduce", 4), "read": ("pread", 2), "vote": ("MPI_Iallreduce", 2), "halo": last("conv2_act.halo.start"),
                           "reduction": last("conv3.weight.reduce.start"), "update": last("conv3.weight.spread.start")})
        return places

    def patience(self):
        """Seconds that no rank keeps the others waiting on this machine, busy as it may be now: a few times those of a
        whole run."""
        begin = time.monotonic()
        code, errors = self.run_job("patience", "steps=2", "overwrite=true")
        self.assertEqual(code, 0, errors)
        return max(3, 2 * round(time.monotonic() - begin))

    def expect_end(self, rank, phase, fault, place):
        output = f"out-{rank}-{phase}-{fault}"
        call, number = place
        # Only ranks that are stopped need the watchdog: with 300 s it would come too late for the others.
        watchdog_seconds = self.patience() if fault == "stop" else None
        found, text = self.run_job(output, fault=f"{rank} {call} {number} {fault}", watchdog_seconds=watchdog_seconds)
        errors = [line for line in text.splitlines() if line.startswith("error: ")]
        code, message = {"error": ERRORS[phase],
                         "exit": (3, r"rank {} \(pid \d+\) ended without a message"),
                         "kill": (137, r"rank {} \(pid \d+\) ended without a message"),
                         "stop": (86, r"rank \d: waited \d+ s in .*; rank {} \(pid \d+\) is stopped")}[fault]
        self.assertEqual(found, code, text)
        self.assertEqual(len(errors), 1, text)
        self.assertRegex(errors[0], "^error: " + message.format(rank))
        if fault == "stop" and phase == "halo":
            # A rank that is no neighbour gets one exchange further.
            self.assertRegex(errors[0], r"(conv2_act|pool2)\.halo\.finish, halo: nothing (from|taken by) rank")
        self.expect_whole_files(self.folder / output)

    def expect_whole_files(self, directory):
        found = {path.name for path in directory.iterdir()} if directory.exists() else set()
        self.assertLessEqual(found, FILES)
        if "metrics.csv" in found:
            self.assertTrue((directory / "metrics.csv").read_text().endswith("\n"))
        if "weights.safetensors" in found:
            content = (directory / "weights.safetensors").read_bytes()
            length = int.from_bytes(content[:8], "little")
            ends = [entry["data_offsets"][1] for name, entry in json.loads(content[8:8 + length]).items() if name != "__metadata__"]
            self.assertEqual(len(content), 8 + length + max(ends))

    def test_job_ends(self):
        places = self.places()
        # Every phase and every fault; two faults for each phase if not all.
        for p, phase in enumerate(PHASES):
            for f, fault in enumerate(FAULTS):
                for rank in range(RANKS) if ALL else [(p + f) % RANKS] if (p + f) % 2 == 0 else []:
                    with self.subTest(phase=phase, fault=fault, rank=rank):
                        self.expect_end(rank, phase, fault, places[rank][phase])

    def test_job_ends_in_every_form_of_exchange(self):
        """Calls somewhere in the first steps: inside rounds, and MPI's own collectives."""
        calls = {"direct": ("MPI_Startall", 60), "recursive": ("MPI_Startall", 60), "ring": ("MPI_Startall", 60),
                 "tree": ("MPI_Startall", 60), "mpi": ("MPI_Ireduce_scatter_block", 3)}
        for i, (form, (call, number)) in enumerate(calls.items()):
            for f, fault in enumerate(FAULTS):
                if not ALL and f != i % len(FAULTS):
                    continue
                with self.subTest(form=form, fault=fault):
                    rank = i % RANKS
                    seconds = self.patience() if fault == "stop" else None
                    found, text = self.run_job(f"{form}-{fault}", "--exchange", form, "--most-ranks-per-machine", "1",
                                               fault=f"{rank} {call} {number} {fault}", watchdog_seconds=seconds)
                    errors = [line for line in text.splitlines() if line.startswith("error: ")]
                    code, message = {"error": (74, rf"rank {rank}: .*{call}"), "exit": (3, rf"rank {rank} \(pid"),
                                     "kill": (137, rf"rank {rank} \(pid"), "stop": (86, rf"rank {rank} \(pid \d+\) is stopped")}[fault]
                    self.assertEqual((found, len(errors)), (code, 1), text)
                    self.assertRegex(errors[0], message)

    def test_signal_to_one_rank_stops_all_after_the_same_step(self):
        command = [PROGRAM, "train", "run.yaml", "output=out", "steps=1000000", "save_every=0", "--grid", f"d{RANKS}", "--threads", "1"]
        metrics = self.folder / "out/metrics.csv"
        with Job({"OMP_NUM_THREADS": "1"}) as job:
            process = subprocess.Popen(command, cwd=self.folder, env=job.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertTrue(until(lambda: metrics.exists() and len(metrics.read_text().splitlines()) > 2, SECONDS_TO_END))
            os.kill(job.rank(2), signal.SIGTERM)
            _, text = job.run(process)
            job.expect_nothing_left(self)

        self.assertEqual(process.returncode, 85, text)
        errors = [line for line in text.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, text)
        self.assertRegex(errors[0], "^error: stopped by a signal after step " + metrics.read_text().splitlines()[-1].split(",")[0] + ";")
        self.expect_whole_files(self.folder / "out")

    def test_failing_start_of_mpi(self):
        for fault, code in (("error", 74), ("exit", 3), ("kill", 137)):
            with self.subTest(fault=fault):
                found, text = self.run_job("never", fault=f"1 MPI_Init_thread 1 {fault}")
                self.assertEqual(found, code, text)
                self.assertFalse((self.folder / "never").exists())


if __name__ == "__main__":
    unittest.main()
