"""The files of the repository, as the repository's tests see them."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
GENERATED = {".git", "build", "runs", ".venv", "__pycache__"}


def files(*suffixes, root=ROOT):
    """All files below root with one of the suffixes (all files without), generated ones left out."""
    found = []
    for path in sorted(root.iterdir()):
        if path.name in GENERATED or path.is_symlink():
            continue
        if path.is_dir():
            found += files(*suffixes, root=path)
        elif not suffixes or path.suffix in suffixes:
            found.append(path)
    return found


def relative(path):
    return path.relative_to(ROOT)
