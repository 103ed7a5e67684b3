"""Every include in orthant/ follows the module table of docs/architecture.md."""

import pathlib
import re
import tempfile
import unittest

import tree

# How a library's headers begin. What is in no list is the language's or the system's.
LIBRARIES = {
    "fmt": ["fmt/"],
    "nlohmann-json": ["nlohmann/"],
    "yaml-cpp": ["yaml-cpp/"],
    "protobuf": ["google/protobuf/"],
    "GLPK": ["glpk.h"],
    "CBC": ["coin/"],
    "SimGrid": ["simgrid/"],
    "MPI": ["mpi.h"],
    "oneDNN": ["dnnl", "oneapi/dnnl/"],
    "OpenMP": ["omp.h"],
    "Highway": ["hwy/"],
    "HDF5": ["hdf5", "H5"],
    "FFTW": ["fftw3"],
    "zlib": ["zlib.h"],
    "CLI11": ["CLI/"],
}
# Folders of a module of which each may include only itself and those before it.
FOLDERS = {"data": ["io", "arrays", "formats", "sets", "generate", "tools"]}
SYSTEM = re.compile(r"((sys|net|netinet|arpa)/)?[a-z_0-9]+(\.h)?")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def read_table(text):
    """module -> (modules it may include, directly or through them; libraries it may include)."""
    lines = iter(text.splitlines())
    rows = {}
    for line in lines:
        if line.startswith("| module | holds |"):
            next(lines)
            break
    for line in lines:
        if not line.startswith("|"):
            break
        module, _, uses, libraries = (cell.strip() for cell in line.strip("|").split("|"))
        rows[module] = (uses, {name for name in LIBRARIES if re.search(rf"\b{re.escape(name)}\b", libraries)})
    reach = {m: {m} | (set(rows) if uses == "all" else set(re.findall("[a-z]+", uses))) for m, (uses, _) in rows.items()}
    for _ in rows:
        reach = {m: set().union(*(reach[used] for used in modules)) for m, modules in reach.items()}
    return {m: (reach[m], libraries) for m, (_, libraries) in rows.items()}


def library_of(header):
    for name, beginnings in LIBRARIES.items():
        if any(header.startswith(b) for b in beginnings):
            return name
    return None


def violations(root, table):
    """Lines "file: includes X, which the table does not allow"."""
    found = []
    for path in tree.files(".hpp", ".cpp", root=root / "orthant"):
        module = path.relative_to(root / "orthant").parts[0]
        where = path.relative_to(root)
        if module not in table:
            found.append(f"{where}: module {module} is not in the table")
            continue
        modules, libraries = table[module]
        for ours, other in INCLUDE.findall(path.read_text()):
            if ours:
                target = ours.split("/")[1] if re.match(r"orthant/\w+/", ours) else None
                if target is None:
                    found.append(f'{where}: "{ours}" is not written "orthant/<module>/<file>"')
                elif target not in modules:
                    found.append(f"{where}: {module} may not include {target} ({ours})")
            elif library_of(other):
                if library_of(other) not in libraries:
                    found.append(f"{where}: {module} may not include {library_of(other)} ({other})")
            elif not SYSTEM.fullmatch(other):
                found.append(f"{where}: <{other}> belongs to no known library")
    return found


def folder_violations(root, folders):
    """Lines "file: includes X, which comes later" of the modules with ordered folders."""
    found = []
    for module, order in folders.items():
        for path in tree.files(".hpp", ".cpp", root=root / "orthant" / module):
            folder = path.relative_to(root / "orthant" / module).parts[0]
            allowed = order[:order.index(folder) + 1] if folder in order else []
            for used in re.findall(rf'#include "orthant/{module}/(\w+)/', path.read_text()):
                if used not in allowed:
                    found.append(f"{path.relative_to(root)}: {folder} may not include {used}")
    return found


class Layers(unittest.TestCase):
    def setUp(self):
        self.table = read_table((tree.ROOT / "docs/architecture.md").read_text())

    def test_table_has_every_module(self):
        present = {p.name for p in (tree.ROOT / "orthant").iterdir() if p.is_dir()}
        self.assertLessEqual(present, set(self.table))

    def test_includes_follow_the_table(self):
        self.assertEqual(violations(tree.ROOT, self.table), [])

    def test_folders_include_only_earlier_ones(self):
        self.assertEqual(folder_violations(tree.ROOT, FOLDERS), [])
        self.assertTrue(folder_violations(tree.ROOT, {"data": FOLDERS["data"][::-1]}))

    def test_each_library_has_one_module(self):
        owners = [library for _, libraries in self.table.values() for library in libraries]
        self.assertEqual(sorted(owners), sorted(set(owners)))

    def test_engine_and_train_never_see_the_planner(self):
        for module in ("engine", "train"):
            self.assertFalse({"oracle", "planner"} & self.table[module][0])

    def test_planted_violations_are_found(self):
        planted = {
            "orthant/tensor/a.hpp": ('#include "orthant/engine/engine.hpp"', "tensor may not include engine"),
            "orthant/train/b.cpp": ("#include <dnnl.hpp>", "train may not include oneDNN"),
            "orthant/plan/c.cpp": ('#include "plan.hpp"', "is not written"),
            "orthant/kernels/d.cpp": ('#  include "orthant/schedule/schedule.hpp"', "kernels may not include schedule"),
            "orthant/misc/e.cpp": ("", "module misc is not in the table"),
        }
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, (text, _) in planted.items():
                (root / name).parent.mkdir(parents=True)
                (root / name).write_text(text + "\n")
            found = violations(root, self.table)
        self.assertEqual(len(found), len(planted), found)
        for name, (_, message) in planted.items():
            self.assertTrue(any(name in line and message in line for line in found), name)


if __name__ == "__main__":
    unittest.main()
