"""`orthant data`: what files hold, whether they are whole, and conversion to HDF5."""

import gzip
import io
import json
import struct
import unittest

import h5py
import numpy
from program import ProgramTest


def nifti(array, order="<"):
    """A NIfTI-1 file; the array is z, y, x, or t, z, y, x."""
    codes = {"u1": 2, "i2": 4, "i4": 8, "f4": 16, "f8": 64}
    kind = array.dtype.str[1:]
    extents = array.shape[::-1]
    header = bytearray(352)
    struct.pack_into(f"{order}i", header, 0, 348)
    struct.pack_into(f"{order}8h", header, 40, len(extents), *extents, *[1] * (7 - len(extents)))
    struct.pack_into(f"{order}2h", header, 70, codes[kind], 8 * array.dtype.itemsize)
    struct.pack_into(f"{order}f", header, 108, 352)
    header[344:348] = b"n+1\0"
    return bytes(header) + array.astype(order + kind).tobytes()


def npy(array):
    buffer = io.BytesIO()
    numpy.save(buffer, array)
    return buffer.getvalue()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def tfrecord(x, y):
    def field(number, data):
        length, count = b"", len(data)
        while count > 127:
            length, count = length + bytes([count & 127 | 128]), count >> 7
        return bytes([number << 3 | 2]) + length + bytes([count]) + data

    def masked(data):
        crc = crc32c(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    features = field(1, field(1, b"x") + field(2, field(1, field(1, x.astype("<i2").tobytes()))))
    features += field(1, field(1, b"y") + field(2, field(2, field(1, y.astype("<f4").tobytes()))))
    example = field(1, features)
    length = struct.pack("<Q", len(example))
    return length + masked(length) + example + masked(example)


class Data(ProgramTest):
    def setUp(self):
        super().setUp()
        self.random = numpy.random.RandomState(3)

    def hdf5(self, name, **arrays):
        (self.folder / name).parent.mkdir(exist_ok=True)
        with h5py.File(self.folder / name, "w") as file:
            for key, array in arrays.items():
                file.create_dataset(key, data=array)

    def universes(self, count=3):
        for i in range(count):
            self.hdf5(f"set/{i}.h5", full=self.random.randint(0, 9, (8, 8, 8, 4)).astype("i2"), unitPar=numpy.ones(4, "f4"))

    def test_inspect(self):
        full = self.random.randint(-5, 100, (8, 8, 8, 4)).astype("i2")
        with h5py.File(self.folder / "a.h5", "w") as file:
            file.create_dataset("full", data=full, chunks=(4, 4, 4, 4), compression="gzip")
            file.create_dataset("unitPar", data=numpy.array([1, 2, 3, 4], "f4"))
            file.create_dataset("namePar", data=["a", "b"])
        found = json.loads(self.expect_success("data", "inspect", "a.h5", "--json"))
        arrays = {array["key"]: array for array in found["first"]["arrays"]}
        self.assertEqual(arrays["full"]["shape"], [8, 8, 8, 4])
        self.assertEqual(arrays["full"]["type"], "int16")
        self.assertEqual(arrays["full"]["storage"], "chunks of 4x4x4x4, gzip")
        self.assertEqual((arrays["full"]["least"], arrays["full"]["most"]), (full.min(), full.max()))
        self.assertAlmostEqual(arrays["full"]["mean"], full.mean(), places=9)
        self.assertEqual(arrays["unitPar"]["mean"], 2.5)
        self.assertIn("text", arrays["namePar"]["note"])
        text = self.expect_success("data", "inspect", "a.h5")
        self.assertIn("chunks of 4x4x4x4, gzip", text)
        self.universes()
        self.assertIn("3 files", self.expect_success("data", "inspect", "set"))

    def test_inspect_other_formats(self):
        volume = self.random.randint(0, 99, (3, 4, 5)).astype("i2")
        self.write("a.nii.gz", gzip.compress(nifti(volume)))
        self.write("b.npy", npy(volume))
        self.write("c.tfrecord", tfrecord(numpy.ones((2, 2, 2, 4)), numpy.ones(4)))
        for name in ("a.nii.gz", "b.npy"):
            array = json.loads(self.expect_success("data", "inspect", name, "--json"))["first"]["arrays"][0]
            self.assertEqual((array["shape"], array["type"], array["most"]), ([3, 4, 5], "int16", volume.max()))
        arrays = json.loads(self.expect_success("data", "inspect", "c.tfrecord", "--json"))["first"]["arrays"]
        self.assertEqual([array["shape"] for array in arrays], [[1, 2, 2, 2, 4], [1, 4]])

    def test_inspect_bad_files(self):
        self.write("bad.h5", b"\x89HDF\r\n\x1a\n" + b"x" * 500)
        self.expect_error(65, "bad.h5' is not a readable HDF5 file", "data", "inspect", "bad.h5")
        self.expect_error(66, "cannot open 'none.h5'", "data", "inspect", "none.h5")
        (self.folder / "bad.h5").unlink()
        self.expect_error(66, "has no file that ends in", "data", "inspect", ".", "--json")

    def test_verify_finds_what_is_wrong(self):
        self.universes()
        self.assertIn("all is well", self.expect_success("data", "verify", "set"))
        full = numpy.ones((8, 8, 8, 4), "f4")
        full[1, 2, 3, 0] = numpy.inf
        cases = [
            (dict(full=full[:7].astype("i2"), unitPar=numpy.ones(4, "f4")), "shape 7x8x8x4, but 'set/0.h5:full' has 8x8x8x4"),
            (dict(full=full, unitPar=numpy.ones(4, "f4")), "at [1, 2, 3, 0] holds inf"),
            (dict(full=numpy.ones((8, 8, 8, 4), "f4"), unitPar=numpy.ones(4, "f4")), "numbers of float32, but 'set/0.h5:full' of int16"),
            (dict(full=numpy.ones((8, 8, 8, 4), "i2")), "has no key 'unitPar', but 'set/0.h5' has"),
        ]
        for arrays, message in cases:
            self.hdf5("set/1.h5", **arrays)
            self.verify_fails(message, "set")
        (self.folder / "set/1.h5").write_bytes((self.folder / "set/0.h5").read_bytes()[:3000])
        self.verify_fails("truncated", "set")

    def verify_fails(self, message, *arguments):
        result = self.run_program("data", "verify", *arguments)
        self.assertEqual(result.returncode, 65, result.stderr)
        self.assertIn(message, result.stdout)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn("1 of 3 files has problems", result.stderr)
        found = json.loads(self.run_program("data", "verify", *arguments, "--json").stdout)
        self.assertEqual(found["files_with_problems"], 1)

    def test_verify_labels(self):
        for i in range(3):
            self.hdf5(f"set/{i}.h5", volume=numpy.zeros((4, 4, 4), "f4"), segmentation=numpy.full((4, 4, 4), i, "u1"))
        self.expect_success("data", "verify", "set", "--classes", "3")
        self.verify_fails("labels from 2 to 2, but classes are 0 to 1", "set", "--classes", "2")

    def test_verify_checksums(self):
        self.universes()
        self.expect_success("data", "verify", "set", "--write-checksums")
        sums = dict(reversed(line.split("  ")) for line in (self.folder / "set/.checksums").read_text().splitlines())
        self.assertEqual(sums["1.h5"], f"{crc32c((self.folder / 'set/1.h5').read_bytes()):08x}")
        self.assertIn("checksums   3 compared", self.expect_success("data", "verify", "set"))
        content = bytearray((self.folder / "set/2.h5").read_bytes())
        content[-1] ^= 1
        (self.folder / "set/2.h5").write_bytes(content)
        self.verify_fails("it has changed", "set")

    def test_convert_nifti(self):
        volumes = self.random.rand(2, 3, 4, 5).astype("f4")
        masks = self.random.randint(0, 3, (2, 3, 4, 5)).astype("u1")
        for i in range(2):
            self.write(f"images/{i}.nii.gz", gzip.compress(nifti(volumes[i], "<>"[i])))
            self.write(f"labels/{i}.nii", nifti(masks[i]))
        self.expect_success("data", "convert", "images", "--labels", "labels", "--to", "out")
        for i in range(2):
            with h5py.File(self.folder / f"out/{i}.h5") as file:
                numpy.testing.assert_array_equal(file["volume"][...], volumes[i][..., None])
                numpy.testing.assert_array_equal(file["segmentation"][...], masks[i])
        self.assertIn("all is well", self.expect_success("data", "verify", "out", "--classes", "3"))
        self.expect_conversion_error(74, "exists already", "images", "--labels", "labels", "--to", "out")
        self.expect_conversion_error(64, "names 1 files for 2 sources", "images", "--labels", "labels/0.nii", "--to", "o")
        self.write("labels/1.nii", nifti(masks[1][:2]))
        self.expect_conversion_error(65, "has shape 2x4x5, but its volume", "images", "--labels", "labels", "--to", "p")
        self.assertEqual(sorted(path.name for path in (self.folder / "p").iterdir()), ["0.h5"])

    def expect_conversion_error(self, code, message, *arguments):
        result = self.run_program("data", "convert", *arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(message, result.stderr.splitlines()[-1])

    def test_convert_channels_of_nifti(self):
        volume = self.random.rand(2, 3, 4, 5).astype("f4")
        self.write("a.nii", nifti(volume))
        self.expect_success("data", "convert", "a.nii", "--to", "out")
        with h5py.File(self.folder / "out/a.h5") as file:
            numpy.testing.assert_array_equal(file["volume"][...], volume.transpose(1, 2, 3, 0))

    def test_convert_npy(self):
        inputs, values = self.random.rand(2, 3, 4, 5, 6).astype("f4"), self.random.rand(2, 4).astype("f4")
        labels = self.random.randint(0, 300, (2, 4, 5, 6))
        self.write("x.npy", npy(inputs))
        self.write("y.npy", npy(values))
        self.write("l.npy", npy(labels))
        self.expect_success("data", "convert", "x.npy", "--targets", "y.npy", "--to", "values")
        self.expect_success("data", "convert", "x.npy", "--labels", "l.npy", "--to", "labels")
        for i in range(2):
            with h5py.File(self.folder / f"values/x-00000{i}.h5") as file:
                numpy.testing.assert_array_equal(file["full"][...], inputs[i].transpose(1, 2, 3, 0))
                numpy.testing.assert_array_equal(file["unitPar"][...], values[i])
            with h5py.File(self.folder / f"labels/x-00000{i}.h5") as file:
                numpy.testing.assert_array_equal(file["segmentation"][...], labels[i])
        self.expect_conversion_error(65, "does not fit", "x.npy", "--labels", "x.npy", "--to", "o")

    def test_convert_tfrecord(self):
        x, y = self.random.randint(0, 99, (2, 4, 4, 4, 4)), self.random.rand(2, 4)
        self.write("a.tfrecord", gzip.compress(tfrecord(x[0], y[0]) + tfrecord(x[1], y[1])))
        result = json.loads(self.expect_success("data", "convert", "a.tfrecord", "--to", "out", "--json"))
        self.assertEqual(result["samples"], 2)
        for i in range(2):
            with h5py.File(self.folder / f"out/a-00000{i}.h5") as file:
                self.assertEqual(file["full"].dtype, numpy.dtype("<i2"))
                numpy.testing.assert_array_equal(file["full"][...], x[i])
                numpy.testing.assert_array_equal(file["unitPar"][...], y[i].astype("f4"))

    def test_convert_refuses_what_it_does_not_know(self):
        self.write("a.jpg", b"x")
        self.write("a.nii", b"x")
        self.expect_conversion_error(64, "of a kind that cannot be converted", "a.jpg", "--to", "out")
        self.expect_conversion_error(65, "not a NIfTI file", "a.nii", "--to", "out")
        self.expect_conversion_error(66, "cannot open 'none.npy'", "none.npy", "--to", "out")


if __name__ == "__main__":
    unittest.main()
