"""Ranks that fail in every way while the others wait: the job ends soon, says why in one line, and leaves nothing behind."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import Job  # noqa: E402

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
ENDED = r"^error: rank {} \(pid \d+\) ended without a message"
STOPPED = r"^error: rank \d: waited \d+ s in {}.*; rank {} \(pid \d+\) is stopped; .*ORTHANT_WATCHDOG_SECONDS"

# fault, failing rank (None: all), exit code, what the one line on stderr must match
FAULTS = [
    ("none", None, 0, None),
    ("early", None, 64, "^error: this happens before MPI is started$"),
    ("agree", None, 66, "^error: cannot open 'x.npy'$"),
    ("agree", 2, 66, "^error: rank 2: cannot open 'x.npy'$"),
    ("on_root", None, 66, "^error: cannot open 'x.npy'$"),
    ("code", 1, 87, None),
    ("throw", None, 65, r"^error: rank \d: the sample is bad$"),
    ("throw", 1, 65, "^error: rank 1: the sample is bad$"),
    ("bad_alloc", 0, 71, "^error: rank 0: out of memory; "),
    ("noexcept", 2, 65, "^error: rank 2: thrown in noexcept code$"),
    ("thread", 1, 65, "^error: rank 1: thrown in a thread$"),
    ("exit", 1, 3, ENDED.format(1)),
    ("kill", 0, 137, ENDED.format(0)),
    ("kill", 2, 137, ENDED.format(2)),
    ("stop", 1, 86, STOPPED.format("turn of the ring, ring: nothing (from|taken by) rank", 1)),
    ("hang", 2, 86, r"^error: rank \d: waited \d+ s in turn of the ring, .*; rank 2 \(pid \d+\) computes or hangs; "),
    ("collective-kill", 1, 137, ENDED.format(1)),
    ("collective-stop", 0, 86, STOPPED.format("a barrier", 0)),
    ("collective-throw", 2, 65, "^error: rank 2: the sample is bad$"),
]


class Faults(unittest.TestCase):
    def start(self, *arguments, watchdog_seconds=None):
        """The program on three ranks of one thread."""
        self.job = Job({} if watchdog_seconds is None else {"ORTHANT_WATCHDOG_SECONDS": str(watchdog_seconds)})
        self.addCleanup(self.job.end)
        command = [PROGRAM, "--ranks", 3, 1, *arguments]
        return subprocess.Popen([str(word) for word in command], env=self.job.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def finish(self, process):
        """stdout and the lines of stderr without warnings, ours or those of mpirun's event loop, of a job that ends and
        leaves nothing behind."""
        out, err = self.job.run(process)
        self.job.expect_nothing_left(self)
        return out, [line for line in err.splitlines() if not line.startswith(("warning: ", "[warn] "))]

    def patience(self):
        """Seconds that no rank keeps the others waiting on this machine, busy as it may be now."""
        begin = time.monotonic()
        self.finish(self.start("none"))
        return max(3, 2 * round(time.monotonic() - begin))

    def test_job_ends_with_the_code_and_one_line(self):
        for fault, rank, code, message in FAULTS:
            with self.subTest(fault=fault, rank=rank):
                # Other faults end the job long before the watchdog's 300 s.
                watchdog_seconds = self.patience() if code == 86 else None
                process = self.start(fault, -1 if rank is None else rank, watchdog_seconds=watchdog_seconds)
                out, errors = self.finish(process)

                self.assertEqual((process.returncode, out), (code, ""), errors)
                self.assertEqual(len(errors), 0 if message is None else 1, errors)
                if message is not None:
                    self.assertRegex(errors[0], message)

    def test_abort_has_a_backtrace_before_the_line(self):
        process = self.start("abort", 1)
        _, errors = self.finish(process)

        self.assertEqual(process.returncode, 134, errors)
        self.assertTrue(any(re.match(ENDED.format(1), line) for line in errors), errors)

    def test_launcher_that_is_ended_takes_its_ranks_along(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            with self.subTest(signal=number.name):
                process = self.start("wait", -1)
                for _ in range(3):
                    self.assertIn("processors", process.stdout.readline())
                self.assertTrue(any("vader_segment" in name for name in self.job.files()), "Open MPI's files are elsewhere")
                process.send_signal(number)
                _, errors = self.finish(process)

                self.assertNotEqual(process.returncode, 0)
                self.assertEqual(errors, [])

    def test_one_rank_needs_no_launcher(self):
        cases = [("collective-throw", 65, "error: the sample is bad\n"), ("agree", 66, "error: cannot open 'x.npy'\n"),
                 ("collective-none", 0, "")]
        for fault, code, message in cases:
            result = subprocess.run([PROGRAM, fault, "0"], capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stderr), (code, message))

    def test_ranks_of_different_programs_are_refused(self):
        """The copy differs in the hash that the linker gave the program."""
        ids = subprocess.run(["readelf", "--notes", PROGRAM], capture_output=True, text=True, check=True).stdout
        build = bytes.fromhex(re.search(r"Build ID: (\w+)", ids).group(1))
        self.job = Job({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
        self.addCleanup(self.job.end)
        with tempfile.TemporaryDirectory() as folder:
            other = pathlib.Path(folder) / "other"
            other.write_bytes(PROGRAM.read_bytes().replace(build, build[::-1]))
            other.chmod(0o755)
            command = ["mpirun", "--quiet", "--oversubscribe", "--bind-to", "none", "-np", "2", PROGRAM, "none", ":", "-np", "1", other, "none"]
            process = subprocess.Popen(command, env=self.job.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            _, errors = self.finish(process)

        self.assertEqual(process.returncode, 76, errors)
        self.assertEqual(len(errors), 1, errors)
        builds = (build[::-1][:6].hex(), build[:6].hex())
        self.assertRegex(errors[0], r"^error: rank 2: host '.*' runs version .*, build %s, but rank 0 on host '.*' runs version .*, build %s; " % builds)

    def test_bad_timeout_is_refused(self):
        environment = {**os.environ, "ORTHANT_WATCHDOG_SECONDS": "soon"}
        result = subprocess.run([PROGRAM, "--ranks", "2", "1", "none"], env=environment, capture_output=True, text=True)

        self.assertEqual(result.returncode, 64, result.stderr)
        self.assertIn("ORTHANT_WATCHDOG_SECONDS is 'soon'", result.stderr)


class Binding(unittest.TestCase):
    def bindings(self, ranks, threads):
        """Per rank: the processors it may run on and its number of threads."""
        result = subprocess.run([PROGRAM, "--ranks", str(ranks), str(threads), "binding"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = sorted(result.stdout.splitlines())
        self.assertEqual(len(lines), ranks)
        return [re.search(r"processors (\S+), (\d+) threads", line).groups() for line in lines], result.stderr

    def test_ranks_that_fit_have_processors_of_their_own(self):
        processors = len(os.sched_getaffinity(0))
        found, warnings = self.bindings(processors, 1)

        self.assertEqual(len({p for p, _ in found}), processors)
        self.assertEqual({t for _, t in found}, {"1"})
        self.assertEqual(warnings, "")

    def test_more_ranks_than_processors_share_them(self):
        found, warnings = self.bindings(len(os.sched_getaffinity(0)) + 1, 1)

        self.assertEqual(len({p for p, _ in found}), 1)
        self.assertRegex(warnings, r"^warning: \d+ ranks of 1 thread on \d+ processors?: ")

    def test_part_of_the_machine_is_not_left(self):
        processor = str(max(os.sched_getaffinity(0)))
        result = subprocess.run(["taskset", "-c", processor, PROGRAM, "--ranks", "1", "1", "binding"], capture_output=True, text=True)

        self.assertIn(f"processors {processor}, ", result.stdout, result.stderr)

    def test_too_few_open_files_are_an_error(self):
        result = subprocess.run(["prlimit", "--nofile=40:40", PROGRAM, "--ranks", "2", "1", "none"], capture_output=True, text=True)

        self.assertEqual(result.returncode, 71)
        self.assertIn("ulimit -n", result.stderr)

    def test_missing_mpirun_is_an_error_that_names_the_package(self):
        environment = {**os.environ, "PATH": "/nowhere"}
        result = subprocess.run([PROGRAM, "--ranks", "2", "1", "none"], env=environment, capture_output=True, text=True)

        self.assertEqual(result.returncode, 66)
        self.assertIn("apt-get install openmpi-bin", result.stderr)


if __name__ == "__main__":
    unittest.main()
