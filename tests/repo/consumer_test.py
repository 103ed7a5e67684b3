"""The installed tree: the program runs from it, and the examples in C++ build against it with find_package(orthant)."""

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
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.prefix = pathlib.Path(cls.folder.name) / "prefix"
        run(CMAKE, "--install", BUILD, "--prefix", cls.prefix)

    def build(self, example, *options):
        """The folder in which an example was built against the installed tree."""
        build = pathlib.Path(self.folder.name) / example
        run(CMAKE, "-S", tree.ROOT / "examples" / example, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}",
            "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF", *options)
        run(CMAKE, "--build", build)
        return build

    def test_installed_package_builds_and_trains(self):
        version = run(self.prefix / "bin/orthant", "--version")
        losses = [float(x) for x in re.findall(r"loss (\S+)", run(self.build("consumer") / "consumer"))]

        self.assertRegex(version, r"\d+\.\d+\.\d+")
        self.assertGreaterEqual(len(losses), 5)
        self.assertLess(losses[-1], 0.5 * losses[0])
        self.assertEqual(self.paths_of_the_source_tree(self.prefix), [])

    def test_microbatch_alone_needs_neither_mpi_nor_yaml(self):
        absent = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("MPI", "OpenMP", "yaml-cpp", "PkgConfig", "ZLIB")]
        program = self.build("tune_convolution", *absent) / "tune_convolution"
        store = pathlib.Path(self.folder.name) / "kernels.json"

        first = run(program, "1000000", store)
        second = run(program, "0", store)

        self.assertRegex(first, "measured now: [1-9]")
        self.assertIn("measured now: 0", second)
        chosen = re.search(r"chosen: .* 0 KiB of workspace: (.*)", second)[1]
        self.assertEqual(sum(int(samples) for samples in re.findall(r"(\d+)x", re.sub(r"x\S+", "x", chosen))), 32)

    def paths_of_the_source_tree(self, prefix):
        """Installed CMake files that name the tree they came from would break when it moves."""
        return [p.name for p in prefix.rglob("*.cmake") if str(tree.ROOT) in p.read_text()]


if __name__ == "__main__":
    unittest.main()
