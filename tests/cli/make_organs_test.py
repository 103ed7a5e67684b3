"""`data make organs`: what is in the files, and what they are a function of. h5py and numpy are the judges."""

import filecmp
import json
import unittest

import h5py
import numpy as np

from program import ProgramTest


class MakeOrgans(ProgramTest):
    def make(self, directory, *arguments):
        return self.expect_success("data", "make", "organs", directory, *arguments)

    def names(self, directory):
        return sorted(path.name for path in (self.folder / directory).iterdir())

    def test_files_hold_volume_and_segmentation(self):
        self.make("set", "--size", 24, "--samples", 3)

        self.assertEqual(self.names("set"), [f"organs_0000{i}.h5" for i in range(3)])
        for name in self.names("set"):
            with h5py.File(self.folder / "set" / name) as file:
                volume, labels = file["volume"], file["segmentation"]
                self.assertEqual((volume.shape, volume.dtype), ((24, 24, 24, 1), np.float32))
                self.assertEqual((labels.shape, labels.dtype), ((24, 24, 24, 1), np.uint8))
                self.assertTrue(np.isfinite(volume[:]).all())
                self.assertEqual(set(np.unique(labels[:])), {0, 1, 2})
                self.assertGreater(volume[:][labels[:] == 1].mean(), volume[:][labels[:] == 0].mean() + 0.1)

    def test_int16_is_the_same_in_1024ths(self):
        self.make("float", "--size", 20, "--classes", 4)
        self.make("int16", "--size", 20, "--classes", 4, "--type", "int16", "--gzip", 1)
        with h5py.File(self.folder / "float/organs_00000.h5") as a, h5py.File(self.folder / "int16/organs_00000.h5") as b:
            self.assertEqual(b["volume"].attrs["scale"], 1024)
            np.testing.assert_allclose(b["volume"][:] / 1024, a["volume"][:], atol=0.5001 / 1024)
            np.testing.assert_array_equal(a["segmentation"][:], b["segmentation"][:])
            self.assertEqual(b["segmentation"].compression, "gzip")
            self.assertEqual(b["segmentation"].attrs["classes"], 4)

    def test_bytes_do_not_depend_on_ranks_or_threads(self):
        self.make("one", "--size", 20, "--samples", 4, "--threads", 1)
        for ranks in (1, 2, 3):
            self.make(f"ranks{ranks}", "--size", 20, "--samples", 4, "--ranks", ranks, "--threads", 2)
            self.assertEqual(self.names("one"), self.names(f"ranks{ranks}"))
            for name in self.names("one"):
                self.assertTrue(filecmp.cmp(self.folder / "one" / name, self.folder / f"ranks{ranks}" / name, shallow=False))

    def test_json_says_what_was_made(self):
        result = json.loads(self.make("set", "--size", 12, "--samples", 2, "--seed", 9, "--json"))
        self.assertEqual((result["volumes"], result["size"], result["classes"], result["seed"]), (2, 12, 3, 9))

    def test_wrong_arguments_leave_nothing_behind(self):
        for code, message, *arguments in [
            (64, "--size: Value 7", "x", "--size", 7),
            (64, "--classes", "x", "--classes", 1),
            (64, "--classes", "x", "--classes", 9),
            (64, "--type", "x", "--type", "uint8"),
            (74, "GiB left", "x", "--size", 4096, "--samples", 1000),
            (74, "cannot make the directory", "/proc/x"),
        ]:
            with self.subTest(arguments=arguments):
                self.expect_error(code, message, "data", "make", "organs", *arguments)
                self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
