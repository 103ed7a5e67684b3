"""Debian's PyTorch with liborthant_dnnl.so preloaded: right, as before where it cannot help, and silent unless asked.

usage: preload_test.py LIBRARY [--convolutions N]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = sys.argv[1]
COUNT = int(sys.argv[3]) if sys.argv[2:3] == ["--convolutions"] else 8
# Of the largest sums in float; those of `fast` may be ten times as far off.
LIMIT, FAST_LIMIT = 2e-6, 2e-5


class Preload(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.store = pathlib.Path(directory.name) / "kernels.json"

    def run_program(self, *arguments, preload=True, **options):
        """What the program prints, as JSON, and its standard error."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ORTHANT_")}
        environment.update(ORTHANT_CACHE=str(self.store), OMP_WAIT_POLICY="passive")
        environment.update({f"ORTHANT_{name.upper()}": str(value) for name, value in options.items()})
        if preload:
            environment["LD_PRELOAD"] = LIBRARY
        done = subprocess.run([sys.executable, "-B", HERE / "convolutions.py", *map(str, arguments)], env=environment,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr

    def test_random_convolutions_are_right(self):
        for seed, options in enumerate(({}, {"error": "fast"}, {"workspace_limit": "256KiB"}), 1):
            found, errors = self.run_program("random", seed, COUNT, **options)
            self.assertLess(found["worst"], FAST_LIMIT if "error" in options else LIMIT, options)
            self.assertEqual(found["done"], COUNT)
            self.assertEqual(errors, "")

    def test_threads_at_once(self):
        self.assertLess(self.run_program("threads")[0]["worst"], LIMIT)

    def test_programs_see_the_same_memory(self):
        self.assertEqual(self.run_program("shapes"), self.run_program("shapes", preload=False))

    def test_losses_are_the_same(self):
        plain = self.run_program("training", preload=False)[0]["losses"]
        for options in ({}, {"batch_policy": "all"}, {"total_workspace": "4MiB"}, {"error": "fast"}):
            losses = self.run_program("training", **options)[0]["losses"]
            for ours, theirs in zip(losses, plain):
                self.assertAlmostEqual(ours, theirs, delta=1e-4 * theirs)

    def test_what_is_measured_is_kept(self):
        self.assertIn(" measuring ", self.run_program("training", summary=1)[1])
        written = self.store.read_bytes()
        errors = self.run_program("training", summary=1)[1]
        self.assertEqual(self.store.read_bytes(), written)
        rows = [line.split() for line in errors.splitlines()]
        self.assertEqual({row[4] for row in rows if row[5:6] == ["measuring"]}, {"0.000"})

    def test_a_damaged_store_is_ignored_with_a_line(self):
        self.store.write_text("{ not JSON")
        found, errors = self.run_program("threads")
        self.assertLess(found["worst"], LIMIT)
        self.assertRegex(errors, r"^orthant: measurements in .*kernels.json are ignored: [^\n]*\n$")

    def test_bad_options_leave_the_program_as_it_is(self):
        plain = self.run_program("training", preload=False)[0]
        for name, value in (("workspace_limit", "-1"), ("batch_policy", "some"), ("error", "none")):
            found, errors = self.run_program("training", **{name: value})
            self.assertEqual(found, plain)
            self.assertRegex(errors, rf"^orthant: ORTHANT_{name.upper()} is '{value}'[^\n]*as without liborthant_dnnl\n$")

    def test_without_workspace_the_program_is_as_before(self):
        plain = self.run_program("training", preload=False)[0]
        found, errors = self.run_program("training", workspace_limit=0, summary=1)
        self.assertEqual(found, plain)
        self.assertRegex(errors, r"orthant: 0.000 s in all; [1-9]\d* requests were left to oneDNN")

    def test_other_operations_are_left_alone(self):
        plain = self.run_program("others", preload=False)[0]
        found = self.run_program("others")[0]
        self.assertLess(found["blocked"], LIMIT)
        self.assertEqual((found["half"], found["transposed"]), (plain["half"], plain["transposed"]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
