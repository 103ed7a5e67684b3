"""Ranks of one machine under `data`: the weights are one memory, and gradients are read in the memory of their sender.

The maps of the running processes are the judge: results would be the same if everything were copied.
"""

import collections
import pathlib
import re
import subprocess
import sys
import unittest

from program import PROGRAM, SECONDS_TO_END, ProgramTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import Job, until  # noqa: E402

LAYERS, CHANNELS = 4, 256
# Every layer fills a bucket of gradients.
NETWORK = ("name: deep\ninput: 256x4x4\nlayers:\n" +
           "".join(f"  - {{name: conv{i}, op: conv, filters: {CHANNELS}, kernel: 3, pad: 1}}\n" for i in range(LAYERS)) +
           "  - {name: flatten, op: flatten}\n  - {name: fc, op: dense, features: 4}\nloss: mean_squared_error\n")
# Of weights, or of gradients, in buckets that are large enough to be shared.
BYTES = LAYERS * 9 * CHANNELS * CHANNELS * 4
MAPPING = re.compile(r"(\w+)-(\w+) (\S+) \w+ (\S+ \d+) +/memfd:orthant-shared")

Mapping = collections.namedtuple("Mapping", "writable file bytes")


def shared_mappings(pid):
    """The memory of `pid` that belongs to files of shared pages, which are known by device and inode."""
    found = MAPPING.findall(pathlib.Path(f"/proc/{pid}/maps").read_text())
    return [Mapping("w" in rights, file, int(end, 16) - int(begin, 16)) for begin, end, rights, file in found]


class SharedMemory(ProgramTest):
    def mappings_of_ranks(self, ranks):
        """rank -> its shared mappings, in a run that has made some steps and goes on."""
        self.write("net.yaml", NETWORK)
        self.write("run.yaml", f"model: net.yaml\nmini_batch: {ranks}\nsteps: 1000000\nlearning_rate: 0.001\noutput: out{ranks}\ndata: {{samples: 12}}\n")
        metrics = self.folder / f"out{ranks}/metrics.csv"
        with Job({"OMP_NUM_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}) as job:
            command = [PROGRAM, "train", "run.yaml", "--ranks", str(ranks), "--grid", f"n{ranks}", "--threads", "1", "--algorithm", "rule"]
            with open(self.folder / "log", "w") as log:
                process = subprocess.Popen(command, cwd=self.folder, env=job.environment, stdout=log, stderr=log)
            made_steps = lambda: metrics.exists() and len(metrics.read_text().splitlines()) > 3
            until(lambda: made_steps() or process.poll() is not None, SECONDS_TO_END)
            self.assertIsNone(process.poll(), (self.folder / "log").read_text())
            self.assertTrue(made_steps())
            found = {}
            for pid in job.processes():
                rank = re.search(rb"\0OMPI_COMM_WORLD_RANK=(\d+)", pathlib.Path(f"/proc/{pid}/environ").read_bytes())
                if rank:  # the process that guards rank 0 has its environment, but none of its memory
                    found[int(rank[1])] = found.get(int(rank[1])) or shared_mappings(pid)
            job.kill()
            process.wait()
        self.assertEqual(sorted(found), list(range(ranks)))
        return found

    def own_files(self, mappings):
        """The file of each rank's own arena. The weights are in that of rank 0, which the others have, too."""
        files = {rank: {mapping.file for mapping in some if mapping.writable} for rank, some in mappings.items()}
        self.assertEqual(len(files[0]), 1, files)
        own = {rank: some if rank == 0 else some - files[0] for rank, some in files.items()}
        self.assertEqual([len(some) for some in own.values()], [1] * len(own), files)
        own = {rank: some.pop() for rank, some in own.items()}
        self.assertEqual(len(set(own.values())), len(own), files)
        return own

    def test_ranks_share_weights_and_read_gradients_in_place(self):
        for ranks in (2, 3):
            with self.subTest(ranks=ranks):
                mappings = self.mappings_of_ranks(ranks)
                own = self.own_files(mappings)
                total = lambda rank, file, writable: sum(m.bytes for m in mappings[rank] if m.file == file and m.writable == writable)
                for rank in range(ranks):
                    self.assertGreaterEqual(total(rank, own[0], True), BYTES, f"weights of rank {rank}")
                    for peer in set(range(ranks)) - {rank}:
                        self.assertGreaterEqual(total(rank, own[peer], False), BYTES // ranks, f"gradients of rank {peer} that rank {rank} adds")


if __name__ == "__main__":
    unittest.main()
