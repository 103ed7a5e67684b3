"""`data make cosmology`: what is in the files, and what they are a function of. h5py and numpy are the judges."""

import filecmp
import json
import pathlib
import resource
import signal
import subprocess
import sys
import time
import unittest

import h5py
import numpy as np

from program import PROGRAM, SECONDS_TO_END, ProgramTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from linear_theory import measured_power  # noqa: E402


class MakeCosmology(ProgramTest):
    def make(self, directory, *arguments):
        return self.expect_success("data", "make", "cosmology", directory, "--threads", 1, *arguments)

    def names(self, directory):
        return sorted(path.name for path in (self.folder / directory).iterdir())

    def test_files_hold_what_the_cosmoflow_sets_hold(self):
        self.make("set", "--size", 16, "--samples", 3, "--seed", 7)

        self.assertEqual(self.names("set"), [f"universe_0000{i}.h5" for i in range(3)])
        seen = set()
        for name in self.names("set"):
            with h5py.File(self.folder / "set" / name) as file:
                full, unit, physical = file["full"], file["unitPar"][:], file["physPar"][:]
                self.assertEqual((full.shape, full.dtype), ((16, 16, 16, 4), np.int16))
                self.assertIsNone(full.chunks)
                self.assertEqual((unit.dtype, physical.dtype), (np.float32, np.float32))
                self.assertEqual(list(file.attrs["redshifts"]), [3, 1.5, 0.5, 0])
                self.assertEqual((file.attrs["seed"], full.attrs["scale"], file.attrs["box_mpc_per_h"][0]), (7, 64, 16))
                # Mass is conserved, but for the rounding of each cell to a 64th of a particle.
                np.testing.assert_allclose(full[:].mean(axis=(0, 1, 2)) / 64, 1, atol=1e-3)
                self.assertGreaterEqual(full[:].min(), 0)
                np.testing.assert_allclose(physical, np.array([0.3089, 0.8159, 0.9667, 67.74]) * (1 + 0.3 * unit), rtol=1e-6)
                self.assertLessEqual(abs(unit).max(), 1)
                seen.add(tuple(unit))
        self.assertEqual(len(seen), 3)

    def test_bytes_do_not_depend_on_ranks_or_threads(self):
        for number, layout in enumerate([(), ("--split", 6, "--gzip", 2), ("--type", "float", "--box", 40)]):
            arguments = ("--size", 18, "--samples", 2, *layout)
            self.make(f"one{number}", *arguments)
            for ranks in (1, 2, 3):
                other = f"other{number}_{ranks}"
                self.expect_success("data", "make", "cosmology", other, "--ranks", ranks, "--threads", 2, *arguments)
                self.assertEqual(self.names(f"one{number}"), self.names(other))
                for name in self.names(other):
                    same = filecmp.cmp(self.folder / f"one{number}" / name, self.folder / other / name, shallow=False)
                    self.assertTrue(same, (layout, ranks, name))

    def test_another_seed_is_another_set(self):
        for seed in (1, 2):
            self.make(f"seed{seed}", "--size", 8, "--seed", seed)
        one, two = (h5py.File(self.folder / f"seed{seed}" / "universe_00000.h5") for seed in (1, 2))
        self.assertTrue((one["full"][:] != two["full"][:]).any() and (one["unitPar"][:] != two["unitPar"][:]).all())

    def test_cubes_are_parts_of_their_universe(self):
        self.make("whole", "--size", 24, "--samples", 2)
        self.make("cubes", "--size", 24, "--samples", 2, "--split", 8, "--gzip", 4)

        self.assertEqual(len(self.names("cubes")), 2 * 27)
        for name in self.names("cubes"):
            with h5py.File(self.folder / "cubes" / name) as cube, h5py.File(self.folder / "whole" / (name[:14] + ".h5")) as whole:
                d, h, w = (8 * int(part[1:]) for part in name[:-3].split("_")[2:])
                self.assertEqual(list(cube.attrs["origin"]), [d, h, w])
                np.testing.assert_array_equal(cube["full"][:], whole["full"][d:d + 8, h:h + 8, w:w + 8])
                np.testing.assert_array_equal(cube["unitPar"][:], whole["unitPar"][:])
                self.assertEqual(cube["full"].compression, "gzip")

    def test_power_is_that_of_linear_theory_on_large_scales(self):
        self.make("set", "--size", 48, "--box", 600, "--samples", 16, "--type", "float", "--redshifts", "3,0")
        files = sorted((self.folder / "set").iterdir())
        # Waves of 600 to 86 Mpc/h, 8,700 of them: a standard error of 1.1 %.
        early = np.mean([measured_power(file, 0, [1, 7])[0][2] for file in files])
        # Today only longer ones are linear: 600 to 133 Mpc/h, 2,300 of them, 2.1 %.
        today = np.mean([measured_power(file, 1, [1, 4.5])[0][2] for file in files])

        self.assertAlmostEqual(early, 1, delta=0.05)
        self.assertAlmostEqual(today, 1, delta=0.05)

    def test_json_says_what_was_made(self):
        result = json.loads(self.make("set", "--size", 12, "--samples", 2, "--split", 6, "--json"))

        self.assertEqual((result["universes"], result["files"], result["size"], result["cube"]), (2, 16, 12, 6))
        self.assertGreater(result["predicted_bytes"], 12**3 * 24)

    def test_a_directory_in_use_is_left_alone(self):
        self.make("set", "--size", 8, "--samples", 2)
        before = (self.folder / "set/universe_00000.h5").read_bytes()
        self.expect_error(74, "is not empty", "data", "make", "cosmology", "set", "--size", 8, "--seed", 1)
        self.assertEqual((self.folder / "set/universe_00000.h5").read_bytes(), before)

        self.make("set", "--size", 8, "--samples", 1, "--seed", 1, "--overwrite")
        self.assertEqual(self.names("set"), ["universe_00000.h5"])
        self.assertNotEqual((self.folder / "set/universe_00000.h5").read_bytes(), before)

    def test_wrong_arguments_leave_nothing_behind(self):
        self.write("file", "x")
        cases = [
            (64, "--size: Value 0", "x", "--size", 0),
            (64, "--size: Value 7", "x", "--size", 7),
            (64, "--size: Value 1000000", "x", "--size", 1000000),
            (71, "use a smaller --size", "x", "--size", 4096),
            (64, "--split 5", "x", "--size", 32, "--split", 5),
            (64, "--box", "x", "--box", -3),
            (64, "--redshifts: -1", "x", "--redshifts", "-1"),
            (64, "did you mean 'bbks'?", "x", "--spectrum", "bbsk"),
            (64, "--type", "x", "--type", "int8"),
            (64, "--seed", "x", "--seed", "-1"),
            (64, "--samples", "x", "--samples", 0),
            (74, "GiB left", "x", "--size", 256, "--samples", 1000000),
            (71, "9 ranks cannot share 8 planes", "x", "--size", 8, "--ranks", 9),
            (74, "is a file", "file"),
            (74, "is a file", "file/x"),
            (74, "cannot make the directory", "/proc/x"),
            (64, "directory is required",),
        ]
        for code, message, *arguments in cases:
            with self.subTest(arguments=arguments):
                self.expect_error(code, message, "data", "make", "cosmology", *arguments)
                self.assertEqual([path.name for path in self.folder.iterdir()], ["file"])

    def test_a_full_disk_leaves_no_part_of_a_file(self):
        for limit in (0, 100, 3000, 30000, 36000):
            def limited():
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

            with self.subTest(limit=limit):
                result = self.run_program("data", "make", "cosmology", f"full{limit}", "--size", 16, preexec_fn=limited)
                self.assertEqual(result.returncode, 74, result.stderr)
                self.assertRegex(result.stderr, r"^error: cannot write 'full\d+/universe_00000.h5': File too large\n$")
                self.assertEqual(self.names(f"full{limit}"), [])

    def test_a_signal_stops_it_between_files(self):
        (self.folder / "set").mkdir()
        command = [PROGRAM, "data", "make", "cosmology", "set", "--size", "32", "--samples", "10000", "--threads", "1"]
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as job:
            while len(self.names("set")) < 2:
                time.sleep(0.01)
            job.send_signal(signal.SIGINT)
            lines = job.communicate(timeout=SECONDS_TO_END)[1].splitlines()

        self.assertEqual(job.returncode, 85)
        self.assertRegex(lines[-1], r"^error: stopped by a signal after \d+ of 10000 universes; those are complete$")
        self.assertEqual([name for name in self.names("set") if not name.endswith(".h5")], [])


if __name__ == "__main__":
    unittest.main()
