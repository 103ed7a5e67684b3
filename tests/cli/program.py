"""Runs the program under test and checks how it ends."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
# For commands that hang; those that work take seconds, or minutes where others keep the machine busy.
SECONDS_TO_END = 600


class ProgramTest(unittest.TestCase):
    """Each test has a directory of its own, which is also the working directory of the program."""

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)

    def tearDown(self):
        self._folder.cleanup()

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    def run_program(self, *arguments, timeout=SECONDS_TO_END, **options):
        environment = {**os.environ, "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, env=environment, capture_output=True,
                              text=True, timeout=timeout, **options)

    def expect_success(self, *arguments):
        result = self.run_program(*arguments)
        self.assertEqual(result.returncode, 0, f"{arguments}: {result.stderr}")
        return result.stdout

    def expect_error(self, code, message, *arguments):
        """One line on stderr that starts with `error: ` and contains the message, and the exit code."""
        result = self.run_program(*arguments)
        where = f"orthant {' '.join(map(str, arguments))}\nstderr: {result.stderr}"
        self.assertEqual(result.returncode, code, where)
        errors = [line for line in result.stderr.splitlines() if not line.startswith(("step ", "measuring ", "measured "))]
        self.assertEqual(len(errors), 1, where)
        self.assertTrue(errors[0].startswith("error: "), where)
        self.assertIn(message, errors[0], where)
