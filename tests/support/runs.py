"""Small training runs that tests stop, kill and go on with, and what is to be seen in their directories."""

import hashlib
import pathlib
import shutil

NETWORK = pathlib.Path(__file__).with_name("small.yaml")
DEFAULTS = {"model": "small.yaml", "mini_batch": 4, "optimizer": "adam", "learning_rate": 0.001, "threads": 1,
            "data": "{kind: synthetic, samples: 10}"}


def write_run(folder, name="run.yaml", **keys):
    """A run file, and the network beside it. Values are YAML."""
    shutil.copy(NETWORK, folder)
    text = "".join(f"{key}: {value}\n" for key, value in {**DEFAULTS, **keys}.items())
    (folder / name).write_text(text)
    return name


def write_samples(folder, count=10):
    """HDF5 files for the network, and the value of the run's key `data`, after which samples may be turned."""
    import h5py
    import numpy

    folder.mkdir()
    numbers = numpy.random.default_rng(0)
    for i in range(count):
        with h5py.File(folder / f"{i}.h5", "w") as file:
            file["full"] = numbers.integers(0, 9, (4, 4, 4, 2)).astype("<i2")
            file["unitPar"] = numbers.random(4).astype("<f4")


class RunFolder:
    """The directory of a run, which may not be there yet."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def steps(self):
        """The last step whose row is complete."""
        metrics = self.path / "metrics.csv"
        rows = metrics.read_text().split("\n")[1:-1] if metrics.exists() else []
        return int(rows[-1].split(",")[0]) if rows else 0

    def checkpoints(self):
        """The steps of complete checkpoints."""
        folder = self.path / "checkpoints"
        names = [path.name for path in folder.iterdir()] if folder.exists() else []
        return sorted(int(name[5:]) for name in names if name[5:].isdigit())

    def newest(self):
        return max(self.checkpoints(), default=0)

    def weights(self):
        """A hash of them; None if there are none."""
        file = self.path / "weights.safetensors"
        return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else None
