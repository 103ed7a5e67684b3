"""Training on HDF5 files: what is wrong with them is one line with the documented exit code, and any cut reads the same."""

import csv
import os
import shutil
import subprocess
import unittest

import h5py
import numpy
from program import PROGRAM, SECONDS_TO_END, ProgramTest

NETWORK = """name: small
input: 2x6x6x6
layers:
  - {name: conv1, op: conv, filters: 4, kernel: 3, pad: 1}
  - {name: act1, op: relu}
  - {name: flatten, op: flatten}
  - {name: fc1, op: dense, features: 4}
loss: mean_squared_error
"""
SEGMENTATION = """name: segments
input: 1x6x6x6
layers:
  - {name: conv1, op: conv, filters: 3, kernel: 3, pad: 1}
loss: cross_entropy
"""


def run_file(network="net.yaml", data="", **keys):
    more = "".join(f"{key}: {value}\n" for key, value in keys.items())
    return f"model: {network}\nsteps: 4\nmini_batch: 2\n{more}data: {{kind: hdf5, files: data{data}}}\n"


class Hdf5Data(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("net.yaml", NETWORK)
        self.write("segments.yaml", SEGMENTATION)
        self.write("run.yaml", run_file())
        (self.folder / "data").mkdir()
        self.random = numpy.random.RandomState(1)
        for i in range(4):
            self.sample(f"data/{i}.h5")

    def sample(self, name, **arrays):
        arrays = {"full": self.random.randint(0, 50, (6, 6, 6, 2)).astype("<i2"),
                  "unitPar": self.random.rand(4).astype("<f4"), **arrays}
        with h5py.File(self.folder / name, "w") as file:
            for key, array in arrays.items():
                if array is not None:
                    file.create_dataset(key, data=array)

    def losses(self, *arguments):
        self.expect_success("train", *arguments, "output=out", "overwrite=true")
        with open(self.folder / "out" / "metrics.csv") as file:
            return [float(row["loss"]) for row in csv.DictReader(file)]

    def refused(self, code, message, *arguments):
        self.expect_error(code, message, "train", "run.yaml", "output=out", *arguments)
        self.assertFalse((self.folder / "out").exists())

    def test_every_cut_trains_alike(self):
        self.write("run.yaml", run_file(data=", transforms: [log1p, {normalise: {mean: 2, std: [1, 2]}}], "
                                             "augment: {flip: [d, h, w], permute: true}", steps=10).replace("steps: 4\n", ""))
        alone = self.losses("run.yaml")
        for cut in (["--grid", "d3"], ["--grid", "d2h2"], ["--grid", "n2w2"]):
            numpy.testing.assert_allclose(self.losses("run.yaml", *cut, "--threads", "1"), alone, rtol=1e-4)

    def test_labels_are_cut_with_their_volume(self):
        for i in range(4):
            self.sample(f"data/{i}.h5", full=None, unitPar=None, volume=self.random.rand(6, 6, 6).astype("f4"),
                        segmentation=self.random.randint(0, 3, (6, 6, 6)).astype("u1"))
        self.write("run.yaml", run_file("segments.yaml", ", augment: {flip: [d, w], permute: true}"))
        alone = self.losses("run.yaml")
        numpy.testing.assert_allclose(self.losses("run.yaml", "--grid", "d2h2", "--threads", "1"), alone, rtol=1e-4)
        self.sample("data/1.h5", full=None, unitPar=None, volume=numpy.zeros((6, 6, 6), "f4"),
                    segmentation=numpy.full((6, 6, 6), 3, "u1"))
        self.expect_error(65, "1.h5:segmentation' at [0, 0, 0] holds label 3, but the network has classes 0 to 2", "train",
                          "run.yaml", "output=labels")

    def test_what_does_not_fit(self):
        full = numpy.ones((6, 6, 6, 2), "<i2")
        cases = [
            ({"full": full[:5]}, "2.h5:full' has shape 5x6x6x2, but the network wants 2x6x6x6"),
            ({"full": full[0]}, "2.h5:full' has shape 6x6x2, but the network wants"),
            ({"full": None}, "2.h5' has no key 'full'"),
            ({"full": None, "ful": full}, "2.h5' has no key 'full'; did you mean 'ful'?"),
            ({"full": full.astype("c8")}, "2.h5:full' is compound data"),
            ({"unitPar": numpy.ones(3, "f4")}, "2.h5:unitPar' has shape 3"),
            ({"full": full[None][:0]}, "2.h5:full' has shape 0x6x6x6x2"),
        ]
        for arrays, message in cases:
            self.sample("data/2.h5", **arrays)
            self.refused(65, message)

    def test_numbers_that_are_not_finite(self):
        full = numpy.ones((6, 6, 6, 2), "<f4")
        full[1, 2, 3, 1] = numpy.nan
        self.sample("data/2.h5", full=full)
        self.expect_error(65, "2.h5:full' at [1, 2, 3, 1] holds nan", "train", "run.yaml", "output=out")

    def test_damaged_files(self):
        path = self.folder / "data" / "3.h5"
        whole = path.read_bytes()
        for content, message in [(whole[:-40], "truncated file"), (whole[:100], "not a readable HDF5 file"),
                                 (b"", "not an HDF5 file"), (b"x" * 5000, "not an HDF5 file"),
                                 (whole[:8] + b"\xff" * 500 + whole[508:], "3.h5' is")]:
            path.write_bytes(content)
            self.refused(65, message)
            self.refused(65, message, "--ranks", "2")

    def test_files_that_are_not_there(self):
        self.refused(66, "cannot open 'none.h5': No such file", "data.files=none.h5")
        self.refused(66, "no file matches 'data/*.hdf'", "data.files=data/*.hdf")
        (self.folder / "empty").mkdir()
        self.refused(66, "the directory 'empty' has no file that ends in .h5 or .hdf5", "data.files=empty")
        self.write("list.txt", "data/0.h5\ndata/9.h5\n")
        self.refused(66, "cannot open 'data/9.h5'", "data.files=list.txt")
        (self.folder / "data" / "4.h5").symlink_to("gone.h5")
        self.refused(66, "cannot open 'data/4.h5'")
        os.remove(self.folder / "data" / "4.h5")
        os.mkfifo(self.folder / "data" / "4.h5")
        self.refused(74, "not a regular file")

    def test_files_that_may_not_be_read(self):
        (self.folder / "data/2.h5").chmod(0)
        for cut in ([], ["--grid", "d2", "--threads", "1"]):
            result = self.run_as_somebody("train", "run.yaml", "output=out", *cut)
            self.assertEqual((result.returncode, result.stderr), (74, "error: cannot open 'data/2.h5': Permission denied\n"))
        (self.folder / "data").chmod(0)
        result = self.run_as_somebody("train", "run.yaml", "output=out")
        self.assertEqual((result.returncode, result.stderr), (74, "error: cannot list 'data': Permission denied\n"))
        self.assertFalse((self.folder / "out").exists())
        (self.folder / "data").chmod(0o755)

    def test_output_that_may_not_be_written(self):
        (self.folder / "closed").mkdir(mode=0o555)
        for output in ("closed", "closed/new"):
            result = self.run_as_somebody("train", "run.yaml", f"output={output}")
            self.assertEqual((result.returncode, result.stderr), (
                74, f"error: cannot write to '{output}': no permission for '{self.folder}/closed'; choose another directory\n"))

    def run_as_somebody(self, *arguments):
        """Without the rights of root, who may read everything."""
        if os.geteuid() != 0:
            return self.run_program(*arguments)
        self.folder.chmod(0o777)
        program = self.folder / "orthant"
        shutil.copy(PROGRAM, program)
        return subprocess.run([program, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=SECONDS_TO_END,
                              user=65534, group=65534, extra_groups=[],
                              env={**os.environ, "HOME": str(self.folder), "ORTHANT_CACHE": "kernels.json"})

    def test_ambiguous_axes(self):
        self.write("net.yaml", NETWORK.replace("2x6x6x6", "6x6x6x6"))
        for i in range(4):
            self.sample(f"data/{i}.h5", full=self.random.rand(6, 6, 6, 6).astype("f4"))
        self.refused(65, "can be read as DHWC or as CDHW; say which with data.axes")
        last, first = self.losses("run.yaml", "data.axes=DHWC"), self.losses("run.yaml", "data.axes=CDHW")
        self.assertNotEqual(last, first)

    def test_too_few_samples(self):
        self.refused(65, "the data has 4 samples, fewer than a mini-batch of 5", "mini_batch=5")


if __name__ == "__main__":
    unittest.main()
