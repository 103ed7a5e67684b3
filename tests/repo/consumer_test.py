"""The installed tree: the program runs from it, and examples/consumer builds against it with find_package(orthant)."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import tree

CMAKE = sys.argv.pop(2)
BUILD = pathlib.Path(sys.argv.pop(1))


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode != 0:
        raise AssertionError(f"{command[0]} left with {result.returncode}:\n{result.stdout[-4000:]}\n{result.stderr[-4000:]}")
    return result.stdout


class Consumer(unittest.TestCase):
    def test_installed_package_builds_and_trains(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix, build = pathlib.Path(folder) / "prefix", pathlib.Path(folder) / "build"
            run(CMAKE, "--install", BUILD, "--prefix", prefix)
            run(CMAKE, "-S", tree.ROOT / "examples/consumer", "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
                "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF")
            run(CMAKE, "--build", build)

            version = run(prefix / "bin/orthant", "--version")
            losses = [float(x) for x in re.findall(r"loss (\S+)", run(build / "consumer"))]

            self.assertRegex(version, r"\d+\.\d+\.\d+")
            self.assertGreaterEqual(len(losses), 5)
            self.assertLess(losses[-1], 0.5 * losses[0])
            self.assertEqual(self.paths_of_the_source_tree(prefix), [])

    def paths_of_the_source_tree(self, prefix):
        """Installed CMake files that name the tree they came from would break when it moves."""
        return [p.name for p in prefix.rglob("*.cmake") if str(tree.ROOT) in p.read_text()]


if __name__ == "__main__":
    unittest.main()
