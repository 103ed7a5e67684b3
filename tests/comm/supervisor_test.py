"""What happens to a job while MPI starts: a rank or mpirun that dies, is stopped or is told to end is named soon, the
command ends, and neither processes nor files are left.

usage: supervisor_test.py PROGRAM SHIM
"""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import SECONDS_TO_END, Job, children, until  # noqa: E402

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
SHIM = pathlib.Path(sys.argv.pop(1)).resolve()
HOST = socket.gethostname()


class StartUp(unittest.TestCase):
    def start(self, ranks, fault="", **environment):
        self.job = Job({"LD_PRELOAD": str(SHIM), "ORTHANT_TEST_FAULT": fault, **environment})
        self.addCleanup(self.job.end)
        return subprocess.Popen([PROGRAM, "--ranks", str(ranks), "1", "none"], env=self.job.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, process):
        _, errors = self.job.run(process)
        self.job.expect_nothing_left(self)
        return [line for line in errors.splitlines() if line.startswith("error: ")]

    def mpirun_of(self, process):
        self.assertTrue(until(lambda: children(process.pid), SECONDS_TO_END))
        return children(process.pid)[0]

    def rank_processes(self, process, count):
        """The ranks as soon as mpirun has made their processes, in which this program may not even run yet."""
        mpirun = self.mpirun_of(process)
        self.assertTrue(until(lambda: len(children(mpirun)) >= count, SECONDS_TO_END))
        return children(mpirun)

    def test_rank_that_dies_in_the_start_of_mpi_is_named(self):
        for fault, code, cause in (("kill", 137, r"signal 9 \(Killed\)"), ("exit", 3, "exit code 3")):
            for rank in (0, 2):
                with self.subTest(fault=fault, rank=rank):
                    process = self.start(3, f"{rank} MPI_Init_thread 1 {fault}")
                    errors = self.finish(process)
                    self.assertEqual((process.returncode, len(errors)), (code, 1), errors)
                    self.assertRegex(errors[0], rf"^error: rank {rank} \(pid \d+\) on host '{HOST}' ended without a message while MPI started: {cause}")

    def test_rank_that_reports_its_error_is_not_reported_twice(self):
        process = self.start(3, "1 MPI_Init_thread 1 error")
        errors = self.finish(process)
        self.assertEqual((process.returncode, len(errors)), (74, 1), errors)
        self.assertRegex(errors[0], "^error: rank 1: MPI_Init_thread")

    def test_rank_that_is_killed_at_any_moment_ends_the_job(self):
        """Even before mpirun knows of it: it then waits for ever, and the command ends it."""
        for delay in (0, 0.01, 0.03, 0.1, 0.2):
            for which in (0, 1):
                with self.subTest(delay=delay, which=which):
                    process = self.start(2)
                    pid = self.rank_processes(process, which + 1)[which]
                    time.sleep(delay)
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass  # the job was done already
                    begin = time.monotonic()
                    errors = self.finish(process)
                    self.assertLess(time.monotonic() - begin, SECONDS_TO_END / 2)
                    if process.returncode != 0:
                        self.assertEqual(len(errors), 1, errors)
                        self.assertRegex(errors[0], rf"rank {which} \(pid {pid}\)")

    def test_stopped_process_is_named_within_the_time_of_the_watchdog(self):
        for who in ("mpirun", "rank 1"):
            with self.subTest(who=who):
                process = self.start(2, ORTHANT_WATCHDOG_SECONDS="3")
                pid = self.mpirun_of(process) if who == "mpirun" else self.rank_processes(process, 2)[1]
                os.kill(pid, signal.SIGSTOP)
                errors = self.finish(process)
                self.assertEqual((process.returncode, len(errors)), (86, 1), errors)
                self.assertRegex(errors[0], rf"^error: {who} \(pid {pid}\) on host '{HOST}' is stopped while MPI starts; nothing came from it for 3")

    def test_rank_stopped_in_the_start_of_mpi_is_named(self):
        process = self.start(3, "1 MPI_Init_thread 1 stop", ORTHANT_WATCHDOG_SECONDS="3")
        errors = self.finish(process)
        self.assertEqual((process.returncode, len(errors)), (86, 1), errors)
        self.assertRegex(errors[0], r"^error: rank 1 \(pid \d+\) .* is stopped while MPI starts")

    def test_mpirun_that_is_killed_takes_its_ranks_and_files_along(self):
        process = self.start(2)
        mpirun = self.mpirun_of(process)
        self.rank_processes(process, 2)
        os.kill(mpirun, signal.SIGKILL)
        errors = self.finish(process)
        self.assertEqual((process.returncode, len(errors)), (137, 1), errors)
        self.assertRegex(errors[0], r"^error: (mpirun|rank \d) .*while MPI started")

    def test_signal_to_the_command_ends_it_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number.name):
                process = self.start(2, "1 MPI_Init_thread 1 stop")
                self.rank_processes(process, 2)
                time.sleep(0.3)
                process.send_signal(number)
                errors = self.finish(process)
                self.assertNotEqual(process.returncode, 0)
                self.assertEqual(errors, [])

    def test_temporary_directory_that_cannot_be_written_is_named(self):
        for folder, why in (("/nowhere", "No such file"), ("/proc/self", "Permission denied|Operation not permitted|Read-only")):
            with self.subTest(folder=folder):
                process = self.start(2, TMPDIR=folder)
                out, errors = process.communicate(timeout=SECONDS_TO_END)
                lines = errors.splitlines()
                self.assertEqual((process.returncode, len(lines)), (74, 1), errors)
                self.assertRegex(lines[0], f"^error: cannot write to '{folder}', .*({why}).*TMPDIR")


if __name__ == "__main__":
    unittest.main()
