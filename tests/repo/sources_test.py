"""Rules that every file of the repository keeps: size, form, and nothing of one machine in it."""

import re
import subprocess
import unittest

import tree

CODE = (".cpp", ".hpp", ".py", ".sh", ".cmake", ".yaml")
NAMES = re.compile(r"(^|_)(utils?|helpers?|manager|impl|misc)(_|$)")
# Hosts that a document may point to; programs fetch from what the machine is set up with.
HOSTS = {"www.apache.org", "arxiv.org", "doi.org", "keepachangelog.com", "semver.org", "github.com", "ui.perfetto.dev",
         "www.w3.org", "pytorch.org", "huggingface.co",
         # Where the figures of the shipped profiles were found.
         "www.nextplatform.com", "news.mynavi.jp", "www.paranumal.com", "parallel.ru"}
MACHINE = re.compile(r"(?<![\w.])/(work|root|home)/\w|\.pyenv|(index-url|extra-index)\s*=?\s*http")


def lines_with(pattern, *suffixes):
    """ "file:line: text" of every line that the pattern matches. This file names what it looks for, so it is left out."""
    found = []
    for path in tree.files(*suffixes):
        if path.suffix in (".png", ".npy", ".onnx", ".safetensors") or path.name == "sources_test.py" or "corpus" in path.parts:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if pattern.search(line):
                found.append(f"{tree.relative(path)}:{number}: {line.strip()}")
    return found


def sources_of(module):
    """The names of a module's sources, with and without the folders that they are in."""
    root = tree.ROOT / "orthant" / module
    paths = [path.relative_to(root).with_suffix("") for path in tree.files(".cpp", ".hpp", root=root)]
    return {"_".join(path.parts[first:]) for path in paths for first in range(len(path.parts))}


def tests_without_source(listed):
    """Tests of modules that are named neither for a source nor in `listed`."""
    found = []
    for module in sorted(path.name for path in (tree.ROOT / "orthant").iterdir() if path.is_dir()):
        sources = sources_of(module)
        files = tree.files(".cpp", ".py", root=tree.ROOT / "tests" / module)
        names = [path.stem.removesuffix("_test") for path in files if path.stem.endswith("_test")]
        found += [f"{module}.{name}" for name in names if name not in sources and not {name, f"{module}.{name}"} & listed]
    return found


class Sources(unittest.TestCase):
    def test_tests_are_named_for_a_source_or_listed(self):
        listed = set(re.findall(r"`([a-z0-9_.]+)`", (tree.ROOT / "CONTRIBUTING.md").read_text()))
        self.assertEqual(tests_without_source(listed), [])
        self.assertIn("engine.parallel", tests_without_source(set()))

    def test_no_file_is_longer_than_500_lines(self):
        long = {str(tree.relative(p)): n for p in tree.files(*CODE) if (n := len(p.read_text().splitlines())) > 500}
        self.assertEqual(long, {})

    def test_names_say_what_a_file_holds(self):
        self.assertEqual([str(tree.relative(p)) for p in tree.files(*CODE) if NAMES.search(p.stem)], [])

    def test_files_end_with_one_newline_and_have_no_tabs(self):
        texts = {tree.relative(p): p.read_text() for p in tree.files(".cpp", ".hpp", ".py", ".sh", ".cmake", ".yaml", ".md")}
        self.assertEqual([str(p) for p, t in texts.items() if not t.endswith("\n") or t.endswith("\n\n") or "\t" in t], [])

    def test_headers_are_guarded(self):
        # Highway compiles an _inl header once per target, behind a guard that toggles.
        bare = [p for p in tree.files(".hpp") if not p.read_text().startswith("#pragma once\n")]
        self.assertEqual([str(tree.relative(p)) for p in bare if "HWY_TARGET_TOGGLE" not in p.read_text()], [])

    def test_nothing_is_left_to_do(self):
        self.assertEqual(lines_with(re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"), *CODE), [])

    def test_no_test_is_skipped(self):
        pattern = re.compile(r"GTEST_SKIP|TEST(_[FP])?\(\s*DISABLED_|, DISABLED_|unittest\.skip|skipTest|pytest\.mark\.skip")
        self.assertEqual(lines_with(pattern, ".cpp", ".hpp", ".py"), [])

    def test_no_path_of_one_machine(self):
        self.assertEqual(lines_with(MACHINE), [])

    def test_no_host_but_those_documents_point_to(self):
        hosts = {}
        for path in tree.files():
            # Files of the corpus are anything but text.
            if path.suffix not in (".png", ".npy", ".onnx", ".safetensors") and path.name != "sources_test.py" and "corpus" not in path.parts:
                for host in re.findall(r"https?://([\w.-]+)", path.read_text()):
                    hosts.setdefault(host, str(tree.relative(path)))
        self.assertEqual({host: path for host, path in hosts.items() if host not in HOSTS}, {})

    def test_clang_format_has_nothing_to_change(self):
        command = ["clang-format", "--dry-run", "--Werror", *map(str, tree.files(".cpp", ".hpp"))]
        result = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, "run `make format`:\n" + result.stderr[:4000])


if __name__ == "__main__":
    unittest.main()
