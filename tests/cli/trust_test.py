"""Files and neighbours that are not trusted: whatever they are, the program ends soon with one line, or goes on without them."""

import fcntl
import json
import os
import pathlib
import resource
import subprocess
import time
import unittest

import h5py
import numpy
from program import PROGRAM, ProgramTest

RUN = """model: cosmoflow
input: 4x32x32x32
mini_batch: 1
steps: 2
data: {kind: npy, inputs: x.npy, targets: y.npy}
"""


class Trust(ProgramTest):
    def setUp(self):
        super().setUp()
        numpy.save(self.folder / "x.npy", numpy.ones((2, 4, 32, 32, 32), "f4"))
        numpy.save(self.folder / "y.npy", numpy.zeros((2, 4), "f4"))
        self.write("run.yaml", RUN)

    def run_with(self, variables, *arguments, **options):
        environment = {**os.environ, "OMP_NUM_THREADS": "2", **variables}
        return subprocess.run([PROGRAM, *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120, **options)

    def test_second_run_in_a_directory_is_refused(self):
        command = [PROGRAM, "train", "run.yaml", "output=out", "steps=1000000"]
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as first:
            try:
                while not (self.folder / "out/metrics.csv").exists():
                    self.assertIsNone(first.poll())
                    time.sleep(0.05)
                for words in ([], ["overwrite=true"], ["overwrite=true", "--grid", "n1d2", "--threads", "1"]):
                    self.expect_error(75, f"pid {first.pid}", "train", "run.yaml", "output=out", *words)
            finally:
                first.kill()
                first.communicate()
        # The lock of a run that was killed does not last.
        self.expect_success("train", "run.yaml", "output=out", "overwrite=true")
        self.assertFalse((self.folder / "out/.lock").exists())

    def test_planted_links_are_not_followed(self):
        self.write("victim", "precious")
        (self.folder / "out").mkdir()
        for name in ("metrics.csv", "log.txt", "weights.safetensors", "weights.safetensors.part", "plan.json.part", "run.yaml"):
            (self.folder / "out" / name).symlink_to("../victim")
        self.expect_success("train", "run.yaml", "output=out", "overwrite=true")
        self.assertEqual((self.folder / "victim").read_text(), "precious")
        self.assertFalse(any(path.is_symlink() for path in (self.folder / "out").iterdir()))

    def test_link_in_place_of_the_lock_is_not_followed(self):
        self.write("victim", "precious")
        (self.folder / "out").mkdir()
        (self.folder / "out/.lock").symlink_to("../victim")
        self.expect_error(74, "out/.lock", "train", "run.yaml", "output=out")
        self.assertEqual((self.folder / "victim").read_text(), "precious")

    def test_strange_kernel_caches_are_ignored_with_a_line(self):
        self.write("deep.json", "[" * 2_000_000)
        self.write("wide.json", '{"format": "orthant-kernels", "version": 2, "machines": {"b": ' + "[" * 40_000 + "]" * 40_000 + "}}")
        os.mkfifo(self.folder / "fifo.json")
        for cache in ("deep.json", "wide.json", "fifo.json", "/dev/zero"):
            with self.subTest(cache=cache):
                result = self.run_with({"ORTHANT_CACHE": cache}, "train", "run.yaml", "output=out", "overwrite=true", "steps=1")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(f"warning: '{cache}' is ignored", result.stderr)
        for name in ("deep.json", "wide.json"):
            self.assertLess((self.folder / name).stat().st_size, 100_000)
        self.assertTrue(pathlib.Path("/dev/zero").is_char_device())

    def test_lock_of_the_kernel_cache_that_somebody_keeps_is_not_waited_for(self):
        with open(self.folder / "k.json.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            result = self.run_with({"ORTHANT_CACHE": "k.json"}, "train", "run.yaml", "output=out", "steps=1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("warning: cannot write 'k.json'", result.stderr)

    def test_weights_with_a_flipped_bit_are_refused(self):
        self.expect_success("train", "run.yaml", "output=out")
        content = bytearray((self.folder / "out/weights.safetensors").read_bytes())
        content[-1000] ^= 1
        self.write("bad.safetensors", bytes(content))
        self.expect_error(65, "has checksum", "train", "run.yaml", "output=again", "weights=bad.safetensors")

    def test_training_compares_checksums(self):
        self.expect_success("data", "verify", "x.npy", "--write-checksums")
        self.expect_success("train", "run.yaml", "output=out")
        numpy.save(self.folder / "x.npy", numpy.full((2, 4, 32, 32, 32), 2, "f4"))
        self.expect_error(65, "it has changed", "train", "run.yaml", "output=again")

    def test_chunks_that_were_never_written_are_reported(self):
        with h5py.File(self.folder / "a.h5", "w") as file:
            full = file.create_dataset("full", (4, 4, 4), "f4", chunks=(2, 4, 4))
            full[0:2] = 1
        for command in ("inspect", "verify"):
            result = self.run_program("data", command, "a.h5")
            self.assertEqual(result.returncode, 65, result.stdout)
            self.assertIn("1 of 2 chunks that were never written", result.stderr)

    def test_inspect_exits_with_the_code_of_the_problem(self):
        values = numpy.ones((2, 3), "f4")
        values[1, 2] = numpy.nan
        with h5py.File(self.folder / "a.h5", "w") as file:
            file["full"] = values
        for options in ([], ["--json"]):
            result = self.run_program("data", "inspect", "a.h5", *options)
            self.assertEqual(result.returncode, 65, result.stdout)
            self.assertRegex(result.stderr, "^error: .*nan")

    def test_many_keys_are_read_in_time(self):
        keys = [f"k{i}" for i in range(60_000)]
        self.write("a.yaml", "model: cosmoflow\nsettings: {" + ", ".join(f"{key}: 1" for key in keys) + "}\n")
        self.expect_error(64, "no setting", "train", "a.yaml")
        header = json.dumps({key: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for key in keys}).encode()
        self.write("w.safetensors", len(header).to_bytes(8, "little") + header)
        self.expect_error(65, "lacks tensors", "train", "run.yaml", "output=out", "weights=w.safetensors")

    def test_messages_cannot_steer_the_terminal(self):
        self.write("\x1b[2J.yaml", "model: \x1b]0;x\n")
        for name in ("\x1b[2J.yaml", "a" * 3000 + "\x1b", "\x1b[31m\n" + "b" * 100_000):
            result = self.run_program("train", name)
            self.assertNotEqual(result.returncode, 0)
            self.assertNotIn("\x1b", result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1)
            self.assertLess(len(result.stderr), 3000)

    def test_limit_on_the_size_of_files_is_an_error_with_the_name(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        result = self.run_with({}, "train", "run.yaml", "output=out", preexec_fn=limit)
        self.assertEqual(result.returncode, 74, result.stderr)
        self.assertRegex(result.stderr.splitlines()[-1], "^error: cannot write 'out/weights.safetensors': File too large")


if __name__ == "__main__":
    unittest.main()
