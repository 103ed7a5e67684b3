"""Writes HDF5 files with h5py, what they hold as npy, and lists of both: make_hdf5_files.py DIRECTORY."""

import pathlib
import shutil
import sys

import h5py
import numpy

ORDERS = {"DHWC": (1, 2, 3, 0), "CDHW": (0, 1, 2, 3), "NDHWC": (0, 2, 3, 4, 1), "NCDHW": (0, 1, 2, 3, 4)}
STORAGE = {
    "contiguous": {},
    "chunked": {"chunks": 3},
    "gzip": {"chunks": 4, "compression": "gzip"},
    "shuffled": {"chunks": 5, "compression": "gzip", "shuffle": True},
    "checked": {"chunks": 2, "compression": "gzip", "shuffle": True, "fletcher32": True},
    "fletcher": {"chunks": 3, "fletcher32": True},
    "whole": {"chunks": 99, "shuffle": True},
}
TYPES = ["i1", "u1", "<i2", "<u2", "<i4", "<f4", "<f8", "<f2", "<i8", ">i2", ">u2", ">i4", ">f4", ">f8"]


def numbers(shape, kind):
    """Every type holds them exactly."""
    values = numpy.random.RandomState(7).randint(0, 100, size=shape)
    return values.astype(kind)


def storage_of(name, extents):
    options = dict(STORAGE[name])
    if "chunks" in options:
        options["chunks"] = tuple(min(options["chunks"], extent) for extent in extents)
    return options


class Folder:
    def __init__(self, path):
        self.path = path
        self.good, self.bad = [], []

    def add_good(self, name, order, kind, storage, libver="earliest"):
        array = numbers((2, 3, 5, 6, 7) if "N" in order else (3, 5, 6, 7), kind)
        stored = numpy.ascontiguousarray(array.transpose(ORDERS[order]))
        with h5py.File(self.path / f"{name}.h5", "w", libver=libver) as file:
            file.create_dataset("full", data=stored, **storage_of(storage, stored.shape))
        numpy.save(self.path / f"{name}.npy", array.reshape(-1, 3, 5, 6, 7).astype("<f4"))
        exact = stored.dtype.itemsize if storage == "contiguous" else 0
        self.good.append(f"{name} {exact}")

    def add_bad(self, name, message, write):
        with h5py.File(self.path / f"{name}.h5", "w") as file:
            write(file)
        self.bad.append(f"{name}.h5\t{message}")

    def add_bad_bytes(self, name, message, content):
        (self.path / f"{name}.h5").write_bytes(content)
        self.bad.append(f"{name}.h5\t{message}")


def add_good(folder):
    for order in ORDERS:
        for storage in STORAGE:
            folder.add_good(f"{order}-{storage}", order, "<i2", storage)
    for kind in TYPES:
        for storage in ("contiguous", "shuffled"):
            folder.add_good(f"{kind.replace('<', 'le').replace('>', 'be')}-{storage}", "DHWC", kind, storage)
    for storage in STORAGE:
        folder.add_good(f"latest-{storage}", "CDHW", "<u2", storage, libver="latest")


def add_sparse(folder):
    """Most chunks are never written: they have the fill value."""
    array = numpy.full((5, 6, 7, 3), 9, "<i2")
    with h5py.File(folder.path / "sparse.h5", "w") as file:
        data = file.create_dataset("full", array.shape, "<i2", chunks=(2, 3, 4, 3), fillvalue=9, compression="gzip")
        data[2:4, 0:3, 4:7] = array[2:4, 0:3, 4:7] = 5
    numpy.save(folder.path / "sparse.npy", array.transpose(3, 0, 1, 2)[None].astype("<f4"))
    folder.good.append("sparse 0")


def add_compact(folder):
    array = numbers((2, 2, 2, 3), "<i2")
    with h5py.File(folder.path / "compact.h5", "w") as file:
        plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plan.set_layout(h5py.h5d.COMPACT)
        data = h5py.h5d.create(file.id, b"full", h5py.h5t.STD_I16LE, h5py.h5s.create_simple(array.shape), plan)
        data.write(h5py.h5s.ALL, h5py.h5s.ALL, array)
    numpy.save(folder.path / "compact.npy", array.transpose(3, 0, 1, 2)[None].astype("<f4"))
    folder.good.append("compact 0")


def add_bad(folder):
    good = numpy.ones((4, 4, 4, 2), "<i2")

    def external_storage(file):
        file.create_dataset("full", good.shape, good.dtype, external=[("other.bin", 0, h5py.h5f.UNLIMITED)])

    def virtual(file):
        layout = h5py.VirtualLayout(shape=good.shape, dtype=good.dtype)
        layout[...] = h5py.VirtualSource("other.h5", "full", shape=good.shape)
        file.create_virtual_dataset("full", layout)

    def link(value):
        return lambda file: file.__setitem__("full", value)

    def array(*arguments, **options):
        return lambda file: file.create_dataset("full", *arguments, **options)

    folder.add_bad("external-link", "full' is an external link", link(h5py.ExternalLink("other.h5", "/full")))
    folder.add_bad("soft-link", "full' is a soft link", link(h5py.SoftLink("/else")))
    folder.add_bad("external-storage", "external storage", external_storage)
    folder.add_bad("virtual", "a virtual data set", virtual)
    folder.add_bad("lzf", "packed with the filter 32000 'lzf'", array(data=good, compression="lzf"))
    folder.add_bad("scale-offset", "packed with the filter 6", array(data=good, scaleoffset=4))
    folder.add_bad("lists", "lists of varying length", array((4,), h5py.vlen_dtype("i4")))
    folder.add_bad("text", "text", array(data=b"Omega_m"))
    folder.add_bad("compound", "compound data", array((4,), numpy.dtype([("a", "i4"), ("b", "f4")])))
    folder.add_bad("references", "references", array((4,), h5py.ref_dtype))
    folder.add_bad("opaque", "opaque data", array(data=numpy.zeros(4, "V3")))
    folder.add_bad("complex", "compound data", array(data=numpy.zeros(4, "c8")))
    folder.add_bad("boolean", "an enumeration", array(data=numpy.zeros(4, bool)))
    folder.add_bad("null", "empty", array(data=h5py.Empty("f4")))
    folder.add_bad("huge-chunk", "chunks of more than 256 MiB", array((10**5, 10**5), "f4", chunks=(10**4, 10**4)))
    folder.add_bad("bomb", "times the file's size", array((10**4, 10**4, 10), "f4", chunks=(100, 100, 10)))
    folder.add_bad("many-chunks", "cut into more than 32768 chunks", array((40000,), "i1", chunks=(1,)))
    folder.add_bad("absurd", "of an absurd size", array((2**40, 2**40), "f4", chunks=(10, 10)))
    folder.add_bad("unwritten", "never written", array((4, 4), "f4"))
    folder.add_bad("missing-key", "did you mean 'fulll'?", lambda file: file.create_dataset("fulll", data=good))
    folder.add_bad("no-key", "it holds no array", lambda file: file.create_group("g"))


def add_bad_bytes(folder):
    with h5py.File(folder.path / "seed.h5", "w") as file:
        file.create_dataset("full", data=numpy.ones((8, 8, 8, 2), "<i2"))
    whole = (folder.path / "seed.h5").read_bytes()
    folder.add_bad_bytes("truncated", "truncated file", whole[:-100])
    folder.add_bad_bytes("head", "not a readable HDF5 file", whole[:60])
    folder.add_bad_bytes("nothing", "not an HDF5 file", b"")
    folder.add_bad_bytes("prose", "not an HDF5 file", b"this is a text, whatever its name says")
    folder.add_bad_bytes("signature", "not a readable HDF5 file", whole[:8] + bytes(400))
    folder.bad.append(".\tnot a regular file")
    folder.bad.append("none.h5\tNo such file")


def main():
    path = pathlib.Path(sys.argv[1])
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    folder = Folder(path)
    for add in (add_good, add_sparse, add_compact, add_bad, add_bad_bytes):
        add(folder)
    (path / "good.list").write_text("\n".join(folder.good) + "\n")
    (path / "bad.list").write_text("\n".join(folder.bad) + "\n")


if __name__ == "__main__":
    main()
