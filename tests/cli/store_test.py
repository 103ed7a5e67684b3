"""The sample store: every byte is read once, later epochs read nothing, and training is the same with and without it."""

import csv
import json
import unittest

import h5py
import numpy
from program import ProgramTest

NETWORK = """name: small
input: 2x7x6x6
layers:
  - {name: conv1, op: conv, filters: 4, kernel: 3, pad: 1}
  - {name: act1, op: relu}
  - {name: conv2, op: conv, filters: 4, kernel: 3, pad: 1}
  - {name: flatten, op: flatten}
  - {name: fc1, op: dense, features: 4}
loss: mean_squared_error
"""
SAMPLES = 5


def planes(extent, parts):
    """Planes that all parts of a cut read: one of halo on each inner side."""
    return extent + 2 * (parts - 1)


class Store(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("net.yaml", NETWORK)
        self.write("run.yaml", "model: net.yaml\nepochs: 3\nmini_batch: 2\nlearning_rate: 0.001\n"
                               "data: {kind: hdf5, files: data, transforms: log1p}\n")
        (self.folder / "data").mkdir()
        random = numpy.random.RandomState(1)
        for i in range(SAMPLES):
            with h5py.File(self.folder / f"data/{i}.h5", "w") as file:
                file["full"] = random.randint(0, 50, (7, 6, 6, 2)).astype("<i2")
                file["unitPar"] = random.rand(4).astype("<f4")

    def train(self, *arguments):
        text = self.expect_success("train", "run.yaml", "output=out", "overwrite=true", "--threads", "1", "--json", *arguments)
        with open(self.folder / "out" / "metrics.csv") as file:
            return json.loads(text), [float(row["loss"]) for row in csv.DictReader(file)]

    def test_files_are_read_once(self):
        alone = None
        for grid, depth, height in [("1", 1, 1), ("d2", 2, 1), ("d2h2", 2, 2), ("d3", 3, 1), ("n2d2", 2, 1)]:
            with self.subTest(grid=grid):
                summary, losses = self.train("--grid", grid)
                numbers = planes(7, depth) * planes(6, height) * 6 * 2
                first, *later = summary["epoch_io"]
                self.assertEqual(first["file_bytes"], SAMPLES * (numbers * 2 + 16))
                self.assertEqual([epoch["file_bytes"] for epoch in later], [0] * len(later))
                self.assertEqual(summary["store_bytes"], SAMPLES * (numbers + 4) * 4)
                self.assertEqual(first["store_bytes_sent"], 0)
                sent = sum(epoch["store_bytes_sent"] for epoch in later)
                # Only groups of samples pass volumes on; targets are cut over samples by all.
                self.assertEqual(sent > 11 * 16, grid == "n2d2", sent)
                self.assertEqual(len(losses), 8, "three epochs of five samples in pairs")
                alone = alone or losses
                numpy.testing.assert_allclose(losses, alone, rtol=1e-4)

    def test_losses_do_not_depend_on_store_and_ranks(self):
        alone = self.train("steps=10", "data.store=off")[1]
        for arguments in (["--grid", "n2d2"], ["--grid", "n2d2", "data.store=off"], ["--grid", "d2h2", "data.store_limit=2KiB"],
                          ["data.store=memory"], ["data.store_limit=8000"]):
            with self.subTest(arguments=arguments):
                numpy.testing.assert_allclose(self.train("steps=10", *arguments)[1], alone, rtol=1e-4)
        augment = "data.augment={flip: [d, h, w], permute: true}"
        turned = self.train("steps=10", "data.store=off", augment)[1]
        summary, losses = self.train("steps=10", augment, "--grid", "n2d2")
        numpy.testing.assert_allclose(losses, turned, rtol=1e-4)
        self.assertEqual([epoch["file_bytes"] for epoch in summary["epoch_io"][1:]], [0, 0, 0])

    def test_what_does_not_fit_is_read_again(self):
        set_bytes = SAMPLES * (7 * 6 * 6 * 2 * 2 + 16)
        summary, _ = self.train("data.store_limit=7KiB")
        sample = (7 * 6 * 6 * 2 + 4) * 4
        self.assertEqual(summary["store_bytes"], 7 * 1024 // sample * sample)
        self.assertEqual([epoch["file_bytes"] for epoch in summary["epoch_io"][:3]],
                         [set_bytes, set_bytes * 2 // 5, set_bytes * 2 // 5])
        summary, _ = self.train("data.store=off")
        self.assertEqual([epoch["file_bytes"] for epoch in summary["epoch_io"][:3]], [set_bytes] * 3)
        self.assertEqual(summary["store_bytes"], 0)

    def test_the_start_says_what_is_kept(self):
        text = self.expect_success("train", "run.yaml", "output=out")
        self.assertIn("store       9.92 KiB of 9.92 KiB kept in memory, at most 9.92 KiB on a rank\n", text)
        self.assertIn("data of epoch 2: 0 bytes from files", (self.folder / "out" / "log.txt").read_text())
        text = self.expect_success("train", "run.yaml", "output=cut", "data.store_limit=2KiB")
        self.assertIn("kept in memory, at most 1.98 KiB on a rank; the rest is read in every epoch\n", text)

    def test_an_error_while_reading_ahead_ends_the_job(self):
        with h5py.File(self.folder / "data" / "3.h5", "w") as file:
            file["full"] = numpy.full((7, 6, 6, 2), numpy.nan, "f4")
            file["unitPar"] = numpy.ones(4, "f4")
        for cut in (["--grid", "1"], ["--grid", "n2", "--threads", "1"]):
            self.expect_error(65, "3.h5:full' at [", "train", "run.yaml", "output=out", "overwrite=true", *cut)

    def test_bench_io(self):
        for grid, ranks in (["1", 1], ["d2", 2], ["h2", 2]):
            result = json.loads(self.expect_success("bench", "io", "data", "--grid", grid, "--repeats", "2", "--json"))
            self.assertEqual((result["files"], result["bytes"], result["axes"], result["ranks"], result["grid"]),
                             (SAMPLES, SAMPLES * 7 * 6 * 6 * 2 * 2, "DHWC", ranks, grid))
            for key in ("raw_seconds", "whole_seconds", "parallel_seconds", "scatter_seconds", "raw_share", "parallel_speedup"):
                self.assertGreater(result[key], 0)
        self.assertIn("every rank its box", self.expect_success("bench", "io", "data/0.h5", "--repeats", "1"))
        self.expect_error(64, "the grid 'n2' cuts more than d, h and w", "bench", "io", "data", "--grid", "n2")
        self.expect_error(71, "the grid 'd2' has 2 parts for 3 ranks", "bench", "io", "data", "--grid", "d2", "--ranks", "3")
        self.expect_error(65, "'data/0.h5:full' has 4 axes; say with --axes", "bench", "io", "data", "--axes", "DHW")
        self.expect_error(65, "'data/0.h5' has no key 'ful'; did you mean 'full'?", "bench", "io", "data", "--key", "ful")
        self.expect_error(66, "cannot open 'none.h5'", "bench", "io", "none.h5")


if __name__ == "__main__":
    unittest.main()
