"""Ranks that share a limited amount of memory: a run that is not refused is not killed for want of it.

usage: memory_test.py PROGRAM; returns 77 where control groups cannot be made.
"""

import os
import pathlib
import subprocess
import sys
import unittest

from program import PROGRAM, ProgramTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import Job  # noqa: E402

MEBIBYTE = 1 << 20
# Network, input, mini-batch, grid, ranks.
CASES = [("cosmoflow", "4x96x96x96", 1, "d2", 2), ("cosmoflow", "4x64x64x64", 2, "n2", 2), ("cosmoflow", "4x64x64x64", 1, "n1", 1),
         ("unet3d", "1x32x32x32", 2, "n2", 2), ("cosmoflow", "4x64x64x64", 4, "n2d2", 4), ("resnet18", "3x64x64", 8, "n2", 2)]


class Group:
    """A control group with a limit of memory."""

    def __init__(self):
        old = pathlib.Path("/sys/fs/cgroup/memory")
        self.limit = "memory.limit_in_bytes" if old.is_dir() else "memory.max"
        self.folder = (old if old.is_dir() else pathlib.Path("/sys/fs/cgroup")) / f"orthant-test-{os.getpid()}"
        self.folder.mkdir()

    def set(self, limit):
        (self.folder / self.limit).write_text(str(limit))

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        self.folder.rmdir()


class Memory(ProgramTest):
    def setUp(self):
        super().setUp()
        self.group = Group()
        self.addCleanup(self.group.remove)

    def code(self, case, limit):
        """Exit code of a run with so much memory, and what it said."""
        network, extents, mini_batch, grid, ranks = case
        self.group.set(limit)
        self.write("run.yaml", f"model: {network}\ninput: {extents}\nmini_batch: {mini_batch}\nsteps: 2\noptimizer: adam\n"
                               "data: {kind: synthetic, samples: 8}\n")
        with Job({"OMP_NUM_THREADS": "1"}) as job:
            command = [PROGRAM, "train", "run.yaml", "output=out", "overwrite=true", "checkpoint.every=1", "--grid", grid, "--ranks", str(ranks),
                       "--threads", "1", "--algorithm", "rule"]
            process = subprocess.Popen(command, cwd=self.folder, env=job.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       preexec_fn=self.group.enter)
            _, errors = job.run(process)
        return process.returncode, errors

    def test_what_is_not_refused_is_not_killed(self):
        for case in CASES:
            with self.subTest(case=case):
                refused, accepted = 64 * MEBIBYTE, 2048 * MEBIBYTE
                self.assertEqual(self.code(case, accepted)[0], 0)
                while accepted - refused > 4 * MEBIBYTE:
                    limit = (refused + accepted) // 2
                    code, errors = self.code(case, limit)
                    # Far below what is needed, not even the program or MPI can start.
                    if code == 0:
                        accepted = limit
                    else:
                        refused = limit
                        self.assertTrue(code == 71 or limit < 160 * MEBIBYTE, f"{case} with {limit // MEBIBYTE} MiB: {code}, {errors}")
                print(f"{case}: {accepted // MEBIBYTE} MiB are enough")


if __name__ == "__main__":
    try:
        Group().remove()
    except OSError as error:
        print(f"control groups cannot be made: {error}")
        sys.exit(77)
    unittest.main()
