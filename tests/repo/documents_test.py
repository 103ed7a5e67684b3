"""What the documents say: every `orthant` command in a ```sh block runs, every relative link leads somewhere.

A block marked ```sh no-run shows a command without promising that a test has time for it.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import tree

BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else tree.ROOT / "build/release/bin/orthant"


def commands(text):
    """The `orthant` command lines of all runnable blocks, continuation lines joined, prompts and comments dropped."""
    found = []
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            line = line.strip().removeprefix("$ ").replace("build/release/bin/orthant", "orthant")
            if line.startswith("orthant "):
                found.append(line)
    return found


class Documents(unittest.TestCase):
    def test_commands_run(self):
        environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
        for path in tree.files(".md"):
            with tempfile.TemporaryDirectory() as folder:
                for name in ("examples", "docs"):
                    if (tree.ROOT / name).exists():
                        os.symlink(tree.ROOT / name, pathlib.Path(folder) / name)
                for command in commands(path.read_text()):
                    with self.subTest(document=str(tree.relative(path)), command=command):
                        result = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment,
                                                capture_output=True, text=True, timeout=600)
                        self.assertEqual(result.returncode, 0, result.stderr[-2000:])

    def test_commands_are_found(self):
        text = "```sh\nmake demo\n$ build/release/bin/orthant models \\\n  --json\n# orthant x\n```\n```sh no-run\north\n```\n"
        self.assertEqual([shlex.split(c) for c in commands(text)], [["orthant", "models", "--json"]])

    def test_run_file_of_the_document_is_the_demo(self):
        def keys(text):
            return [words for line in text.splitlines() if (words := line.partition("#")[0].split())]

        document = re.search(r"^```yaml\n(.*?)^```", (tree.ROOT / "docs/run-file.md").read_text(), re.MULTILINE | re.DOTALL)
        self.assertEqual(keys(document.group(1)), keys((tree.ROOT / "examples/demo.yaml").read_text()))

    def test_every_op_is_in_the_table_of_networks(self):
        with tempfile.TemporaryDirectory() as folder:
            network = pathlib.Path(folder) / "network.yaml"
            network.write_text("name: a\ninput: 1x1x1\nlayers:\n  - {name: a, op: unknown}\nloss: mean_squared_error\n")
            result = subprocess.run([PROGRAM, "inspect", network], capture_output=True, text=True, timeout=600)
        ops = result.stderr.partition("known are: ")[2].strip().split(", ")
        self.assertIn("conv", ops)
        table = (tree.ROOT / "docs/networks.md").read_text().partition("| op | keys")[2].partition("\n\n")[0]
        described = re.findall(r"`(\w+)`", " ".join(row.split("|")[1] for row in table.splitlines()[2:]))
        self.assertEqual(sorted(ops), sorted(described))

    def test_links_lead_somewhere(self):
        broken = []
        for path in tree.files(".md"):
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
                if "://" not in target and not (path.parent / target).exists():
                    broken.append(f"{tree.relative(path)}: {target}")
        self.assertEqual(broken, [])


if __name__ == "__main__":
    unittest.main()
