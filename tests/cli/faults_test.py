"""One rank of a training run fails in each phase: the job ends soon, one line names rank and place, nothing is left behind.

usage: faults_test.py PROGRAM SHIM [all]; `all` tries every fault in every phase and on every rank.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

import numpy
from program import PROGRAM, ProgramTest

SHIM = pathlib.Path(sys.argv.pop(1)).resolve()
ALL = "all" in sys.argv
sys.argv = [word for word in sys.argv if word != "all"]
RANKS = 3
WATCHDOG_SECONDS = 3
PHASES = ("start", "read", "halo", "reduction", "update")
FAULTS = ("error", "exit", "kill", "stop")
RUN = """model: cosmoflow
input: 4x32x32x32
mini_batch: 1
steps: 6
save_every: 1
data: {kind: npy, inputs: x.npy, targets: y.npy}
"""
# What a run that ended early may leave, all of it complete.
FILES = {"log.txt", "metrics.csv", "plan.json", "run.yaml", "weights.safetensors"}
# phase -> exit code and line for a call that fails
ERRORS = {
    "start": (74, r"rank {}: MPI_Allgather"),
    "read": (74, r"rank {}: cannot read 'x.npy'"),
    "halo": (74, r"rank {}: conv2_act\.halo\.start: MPI_Startall"),
    "reduction": (74, r"rank {}: conv3\.weight\.reduce\.start: MPI_Startall"),
    "update": (74, r"rank {}: conv3\.weight\.spread\.start: MPI_Startall"),
}


def processes_in(folder):
    """Those that work in the folder, zombies left out."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(path / "cwd") == str(folder):
                found.append(int(path.name))
        except OSError:
            pass
    return found


def orphaned_memory():
    """Open MPI's files in /dev/shm that no process has mapped."""
    names = {path.name for path in pathlib.Path("/dev/shm").glob("vader_segment*")}
    for path in pathlib.Path("/proc").glob("[0-9]*/maps") if names else []:
        try:
            names -= set(re.findall(r"/dev/shm/(\S+)", path.read_text()))
        except OSError:
            pass
    return names


def until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


class Faults(ProgramTest):
    def setUp(self):
        super().setUp()
        self.folder = self.folder.resolve()
        random = numpy.random.default_rng(0)
        numpy.save(self.folder / "x.npy", random.standard_normal((4, 4, 32, 32, 32), "f4"))
        numpy.save(self.folder / "y.npy", numpy.zeros((4, 4), "f4"))
        self.write("run.yaml", RUN)

    def start(self, output, *arguments, fault=""):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "ORTHANT_WATCHDOG_SECONDS": str(WATCHDOG_SECONDS),
                       "LD_PRELOAD": str(SHIM), "ORTHANT_TEST_FAULT": fault}
        command = [PROGRAM, "train", "run.yaml", f"output={output}", "--grid", f"d{RANKS}", "--threads", "1", *arguments]
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def places(self):
        """phase -> call and which of its calls, per rank, as a run without faults shows them. In the second step: the
        weights of the first are saved then."""
        process = self.start("clean", "steps=2", "--trace", "trace.json")
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        places = []
        for rank in range(RANKS):
            starts = [e["name"] for e in events if e["ph"] == "X" and e["pid"] == rank and e["args"].get("implementation") == "start"]
            last = lambda name: ("MPI_Startall", len(starts) - starts[::-1].index(name))
            places.append({"start": ("MPI_Allgather", 4), "read": ("pread", 2), "halo": last("conv2_act.halo.start"),
                           "reduction": last("conv3.weight.reduce.start"), "update": last("conv3.weight.spread.start")})
        return places

    def expect_end(self, rank, phase, fault, place):
        output = f"out-{rank}-{phase}-{fault}"
        call, number = place
        process = self.start(output, fault=f"{rank} {call} {number} {fault}")
        begin = time.monotonic()
        try:
            _, text = process.communicate(timeout=30)
        finally:
            for pid in processes_in(self.folder) if process.returncode is None else []:
                os.kill(pid, signal.SIGKILL)
        seconds = time.monotonic() - begin
        errors = [line for line in text.splitlines() if line.startswith("error: ")]
        code, message = {"error": ERRORS[phase],
                         "exit": (3, r"rank {} \(pid \d+\) ended without a message"),
                         "kill": (137, r"rank {} \(pid \d+\) ended without a message"),
                         "stop": (86, r"rank \d: waited \d s in .*; rank {} \(pid \d+\) is stopped")}[fault]
        self.assertEqual(process.returncode, code, text)
        self.assertEqual(len(errors), 1, text)
        self.assertRegex(errors[0], "^error: " + message.format(rank))
        if fault == "stop" and phase == "halo":
            # A rank that is no neighbour gets one exchange further.
            self.assertRegex(errors[0], r"(conv2_act|pool2)\.halo\.finish, halo: nothing (from|taken by) rank")
        # 10 s from the fault, and as long as the run took to get there.
        self.assertLess(seconds, (WATCHDOG_SECONDS + 5 if fault == "stop" else 10) + 5)
        self.assertTrue(until(lambda: not processes_in(self.folder), 5), "processes are left")
        until(lambda: not orphaned_memory(), 5)
        self.assertEqual(orphaned_memory(), set(), "shared memory is left")
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

    def test_failing_start_of_mpi(self):
        for fault, code in (("error", 74), ("exit", 3), ("kill", 137)):
            with self.subTest(fault=fault):
                process = self.start("never", fault=f"1 MPI_Init_thread 1 {fault}")
                _, text = process.communicate(timeout=15)
                self.assertEqual(process.returncode, code, text)
                self.assertTrue(until(lambda: not processes_in(self.folder), 5), "processes are left")
                self.assertFalse((self.folder / "never").exists())


if __name__ == "__main__":
    unittest.main()
