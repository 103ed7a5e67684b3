"""scripts/install_dependencies.sh on machines that lack something, played by programs of our own in PATH."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import tree

SCRIPT = tree.ROOT / "scripts/install_dependencies.sh"


class Machine:
    """A PATH with a dpkg-query that knows `installed`, and an apt-get that writes down how it is called."""

    def __init__(self, folder, installed, known=True):
        self.bin = pathlib.Path(folder)
        self.log = self.bin / "log"
        self.program("dpkg-query", f'case " {" ".join(installed)} " in *" ${{!#}} "*) echo -n installed;; *) exit 1;; esac')
        self.program("apt-cache", 'shift; for p; do echo "$p | 1 | main"; done' if known else "true")
        self.program("apt-get", f'echo "$@" >> {self.log}')
        self.program("sudo", 'echo "sudo" >> ' + str(self.log) + '; exec "$@"')

    def program(self, name, body):
        (self.bin / name).write_text(f"#!/usr/bin/env bash\n{body}\n")
        (self.bin / name).chmod(0o755)

    def run(self, *groups):
        environment = {**os.environ, "PATH": f"{self.bin}:/usr/bin:/bin"}
        result = subprocess.run([SCRIPT, *groups], env=environment, capture_output=True, text=True)
        calls = self.log.read_text().splitlines() if self.log.exists() else []
        return result, [call for call in calls if call != "sudo"]


def packages(*groups):
    return subprocess.run([SCRIPT, "--list", *groups], capture_output=True, text=True, check=True).stdout.split()


class Dependencies(unittest.TestCase):
    def machine(self, installed, known=True):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return Machine(folder.name, installed, known)

    def test_nothing_is_touched_when_all_is_there(self):
        result, calls = self.machine(packages("build", "test")).run("build", "test")

        self.assertEqual((result.returncode, result.stdout, result.stderr, calls), (0, "", "", []))

    def test_what_is_missing_is_named_and_installed(self):
        result, calls = self.machine(set(packages("build")) - {"libdnnl-dev", "cmake"}).run("build")

        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("cmake libdnnl-dev", result.stdout)
        self.assertEqual(len(calls), 1)
        self.assertTrue(calls[0].endswith("install -y --no-install-recommends cmake libdnnl-dev"), calls)

    def test_package_lists_are_fetched_only_when_a_package_is_unknown(self):
        _, calls = self.machine([], known=False).run("build")

        self.assertEqual([("update" in call, "install" in call) for call in calls], [(True, False), (False, True)])

    def test_a_failing_installation_is_an_error(self):
        machine = self.machine([])
        machine.program("apt-get", "exit 100")

        result, _ = machine.run("build")

        self.assertNotEqual(result.returncode, 0)

    def test_unknown_group_is_a_usage_error(self):
        result, calls = self.machine([]).run("biuld")

        self.assertEqual((result.returncode, calls), (64, []))
        self.assertIn("unknown group 'biuld'", result.stderr)


if __name__ == "__main__":
    unittest.main()
