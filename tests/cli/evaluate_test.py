"""Validation, `evaluate` and `infer`: numbers against numpy, every cut alike, bad input in one line."""

import csv
import gzip
import json
import os
import unittest

import h5py
import numpy
from program import ProgramTest

VALUES = """name: values
input: 2x6x6x6
layers:
  - {name: conv1, op: conv, filters: 4, kernel: 3, pad: 1}
  - {name: norm1, op: batch_norm}
  - {name: act1, op: relu}
  - {name: flatten, op: flatten}
  - {name: drop1, op: dropout, rate: 0.5}
  - {name: fc1, op: dense, features: 3}
loss: mean_squared_error
"""
SEGMENTS = """name: segments
input: 1x6x6x6
layers:
  - {name: conv1, op: conv, filters: 4, kernel: 3, pad: 1}
  - {name: norm1, op: batch_norm}
  - {name: act1, op: relu}
  - {name: conv2, op: conv, filters: 3, kernel: 3, pad: 1}
loss: cross_entropy
"""
CUTS = [["--grid", "d2"], ["--grid", "n2d2"], ["--strategy", "filter", "--ranks", 2], ["--grid", "p2", "--micro-batches", 2]]


def run_file(network, files, **keys):
    more = "".join(f"{key}: {value}\n" for key, value in keys.items())
    return (f"model: {network}.yaml\nsteps: 6\nmini_batch: 2\noptimizer: adam\nlearning_rate: 0.01\n{more}"
            f"data: {{kind: hdf5, files: {files}}}\n")


def dice(predicted, true):
    return [2 * numpy.sum((predicted == k) & (true == k)) / (numpy.sum(predicted == k) + numpy.sum(true == k)) for k in range(3)]


class Evaluate(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("values.yaml", VALUES)
        self.write("segments.yaml", SEGMENTS)
        self.write("v.yaml", run_file("values", "v", validation="{fraction: 0.4}"))
        self.write("s.yaml", run_file("segments", "s", validation="{fraction: 0.4, every: 2}"))
        random = numpy.random.RandomState(1)
        self.truth = {"v": [], "s": []}
        for folder in ("v", "s"):
            (self.folder / folder).mkdir()
        for i in range(5):
            with h5py.File(self.folder / f"v/{i}.h5", "w") as file:
                self.truth["v"].append(random.rand(3).astype("f4"))
                file["full"], file["unitPar"] = random.randn(6, 6, 6, 2).astype("f4"), self.truth["v"][-1]
            with h5py.File(self.folder / f"s/{i}.h5", "w") as file:
                volume = random.randn(6, 6, 6).astype("f4")
                self.truth["s"].append(numpy.digitize(volume, [-0.5, 0.7]).astype("u1"))
                file["volume"], file["segmentation"] = volume, self.truth["s"][-1]

    def train(self, which, *more):
        self.expect_success("train", f"{which}.yaml", f"output=out-{which}", "overwrite=true", *more)
        return f"out-{which}/weights.safetensors"

    def evaluate(self, which, weights, *more):
        return json.loads(self.expect_success("evaluate", f"{which}.yaml", "--weights", weights, "--json", *more))

    def table(self, path):
        return list(csv.DictReader((self.folder / path).read_text().splitlines()))

    def outputs_of_step(self, which, weights, samples):
        """The outputs as `step --evaluate` gives them."""
        key = {"v": "full", "s": "volume"}[which]
        volumes = []
        for i in samples:
            with h5py.File(self.folder / f"{which}/{i}.h5") as file:
                volume = file[key][...]
                volumes.append(numpy.moveaxis(volume, -1, 0) if volume.ndim == 4 else volume[None])
        numpy.save(self.folder / "x.npy", numpy.stack(volumes))
        numpy.save(self.folder / "y.npy", numpy.stack([self.truth[which][i] for i in samples]).astype("f4" if which == "v" else "i4"))
        network = {"v": "values", "s": "segments"}[which]
        self.expect_success("step", f"{network}.yaml", "--weights", weights, "--input", "x.npy", "--target", "y.npy", "--dump", "step",
                            "--evaluate")
        content = (self.folder / "step/outputs.safetensors").read_bytes()
        length = int.from_bytes(content[:8], "little")
        entry = json.loads(content[8:8 + length])["output"]
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        loss = json.loads((self.folder / "step/result.json").read_text())["loss"]
        return numpy.frombuffer(content[begin:end], "<f4").reshape(entry["shape"]), loss

    def test_scores_of_values_are_those_of_numpy(self):
        weights = self.train("v")
        result = self.evaluate("v", weights)
        output, loss = self.outputs_of_step("v", weights, range(5))
        truth = numpy.stack(self.truth["v"]).astype("f8")
        error = output.reshape(5, 3).astype("f8") - truth
        self.assertEqual(result["samples"], 5)
        self.assertAlmostEqual(result["loss"], loss, delta=1e-5 * loss)
        self.assertAlmostEqual(result["mean_squared_error"], numpy.mean(error ** 2), delta=1e-5)
        self.assertAlmostEqual(result["mean_absolute_error"], numpy.mean(abs(error)), delta=1e-5)
        for c, channel in enumerate(result["channels"]):
            self.assertAlmostEqual(channel["mean_squared_error"], numpy.mean(error[:, c] ** 2), delta=1e-5)
            self.assertAlmostEqual(channel["mean_absolute_error"], numpy.mean(abs(error[:, c])), delta=1e-5)
            self.assertAlmostEqual(channel["target_variance"], numpy.var(truth[:, c]), delta=1e-9)
            self.assertAlmostEqual(channel["explained"], 1 - numpy.mean(error[:, c] ** 2) / numpy.var(truth[:, c]), delta=1e-3)
        predicted = numpy.array([entry["predicted"] for entry in result["predictions"]])
        numpy.testing.assert_allclose(predicted, output.reshape(5, 3), rtol=1e-4, atol=1e-5)
        numpy.testing.assert_array_equal([entry["true"] for entry in result["predictions"]], truth)
        self.assertEqual([entry["sample"] for entry in result["predictions"]], [f"v/{i}.h5" for i in range(5)])
        text = self.expect_success("evaluate", "v.yaml", "--weights", weights, "--names", "a,b", "--show", 2)
        for word in ("RMSE", "explained", "a", "b", "value 2", "0.h5", "1.h5"):
            self.assertIn(word, text)
        self.assertNotIn("2.h5", text)

    def test_scores_of_labels_are_those_of_numpy(self):
        weights = self.train("s")
        result = self.evaluate("s", weights)
        output, loss = self.outputs_of_step("s", weights, range(5))
        truth, predicted = numpy.stack(self.truth["s"]), numpy.argmax(output, 1)
        self.assertAlmostEqual(result["loss"], loss, delta=1e-5 * loss)
        self.assertAlmostEqual(result["accuracy"], numpy.mean(predicted == truth), delta=1e-3)
        numpy.testing.assert_allclose(result["dice"], dice(predicted, truth), atol=2e-3)
        self.assertAlmostEqual(result["mean_dice"], numpy.mean(dice(predicted, truth)), delta=2e-3)

    def test_every_cut_scores_alike(self):
        for which in ("v", "s"):
            weights = self.train(which)
            alone = self.evaluate(which, weights)
            for cut in CUTS:
                with self.subTest(which=which, cut=cut):
                    found = self.evaluate(which, weights, *cut, "--threads", 1)
                    self.assertAlmostEqual(found["loss"], alone["loss"], delta=1e-5 * alone["loss"])
                    for key in ("mean_squared_error", "mean_absolute_error") if which == "v" else ("accuracy", "mean_dice"):
                        self.assertAlmostEqual(found[key], alone[key], delta=1e-5 if which == "v" else 1e-3)

    def test_training_keeps_the_best_and_the_last(self):
        result = json.loads(self.expect_success("train", "s.yaml", "output=out", "--json"))
        rows = self.table("out/validation.csv")
        self.assertEqual([row["step"] for row in rows], ["2", "4", "6"])
        losses = [float(row["loss"]) for row in rows]
        self.assertEqual(min(losses), result["best"]["loss"])
        self.assertEqual(losses[-1], result["validation"]["loss"])
        self.assertEqual(int(rows[losses.index(min(losses))]["step"]), result["best_step"])
        for weights, loss in (("best", min(losses)), ("weights", losses[-1])):
            found = self.evaluate("s", f"out/{weights}.safetensors", "--validation")
            self.assertEqual(found["samples"], 2)
            self.assertAlmostEqual(found["loss"], loss, delta=1e-6)
        self.assertIn("fraction: 0.4", (self.folder / "out/run.yaml").read_text())

    def test_validation_is_alike_on_ranks(self):
        tables = []
        for cut in ([], ["--grid", "d2", "--threads", 1]):
            self.expect_success("train", "s.yaml", "optimizer=sgd", "output=out", "overwrite=true", *cut)
            tables.append(self.table("out/validation.csv"))
        for alone, ranks in zip(*tables):
            self.assertAlmostEqual(float(ranks["loss"]), float(alone["loss"]), delta=1e-4 * float(alone["loss"]))

    def test_epochs_end_with_a_validation(self):
        result = self.run_program("train", "v.yaml", "epochs=2", "output=out")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([row["step"] for row in self.table("out/validation.csv")], ["2", "3"])
        self.assertIn("step 2  validation loss ", result.stderr)
        self.assertIn("validation  2 samples", result.stdout)
        self.assertRegex(result.stdout, r"best        loss .* in out/best.safetensors")

    def test_validation_files_of_their_own(self):
        self.write("own.yaml", run_file("values", "v", validation="{files: [v/0.h5, v/3.h5, v/4.h5]}"))
        self.expect_success("train", "own.yaml", "output=out")
        found = json.loads(self.expect_success("evaluate", "own.yaml", "--weights", "out/weights.safetensors", "--validation", "--json"))
        self.assertEqual([entry["sample"] for entry in found["predictions"]], ["v/0.h5", "v/3.h5", "v/4.h5"])
        self.assertAlmostEqual(found["loss"], float(self.table("out/validation.csv")[-1]["loss"]), delta=1e-6)

    def test_infer_writes_values(self):
        weights = self.train("v")
        wanted = self.evaluate("v", weights)["predictions"]
        with h5py.File(self.folder / "new.h5", "w") as file, h5py.File(self.folder / "v/2.h5") as old:
            file["full"] = old["full"][...]  # and no target
        infer = ["infer", "v.yaml", "--weights", weights, "--input", "new.h5", "v/4.h5", "v/0.h5"]
        for number, cut in enumerate(([], *CUTS)):
            self.expect_success(*infer, "--output", f"p{number}", *cut, "--threads", 1)
            rows = self.table(f"p{number}/predictions.csv")
            self.assertEqual([row["sample"] for row in rows], ["new.h5", "v/4.h5", "v/0.h5"])
            for row, i in zip(rows, (2, 4, 0)):
                numpy.testing.assert_allclose([float(row[f"value_{c}"]) for c in range(3)], wanted[i]["predicted"], rtol=1e-4, atol=1e-5)
        self.expect_success(*infer, "--output", "j", "--format", "json")
        entries = json.loads((self.folder / "j/predictions.json").read_text())
        numpy.testing.assert_allclose(entries[1]["values"], wanted[4]["predicted"], rtol=1e-4, atol=1e-5)

    def test_infer_writes_volumes(self):
        weights = self.train("s")
        output, _ = self.outputs_of_step("s", weights, range(5))
        infer = ["infer", "s.yaml", "--weights", weights, "--input", "s", "--overwrite"]
        for cut in ([], *CUTS, ["--grid", "d2h2"]):
            with self.subTest(cut=cut):
                self.expect_success(*infer, "--output", "p", *cut, "--threads", 1)
                self.expect_success(*infer, "--output", "l", "--labels", *cut, "--threads", 1)
                for i in range(5):
                    with h5py.File(self.folder / f"p/{i}.h5") as file:
                        prediction = file["prediction"][...]
                    numpy.testing.assert_allclose(numpy.moveaxis(prediction, -1, 0), output[i], rtol=1e-3, atol=1e-4)
                    with h5py.File(self.folder / f"l/{i}.h5") as file:
                        self.assertEqual(file["prediction"].dtype, numpy.uint8)
                        numpy.testing.assert_array_equal(file["prediction"][...], numpy.argmax(prediction, -1))
        self.assertEqual(sorted(os.listdir(self.folder / "p")), [f"{i}.h5" for i in range(5)])
        self.expect_success(*infer, "--output", "n", "--format", "nifti", "--labels", "--grid", "d2")
        content = gzip.decompress((self.folder / "n/3.nii.gz").read_bytes())
        self.assertEqual(numpy.frombuffer(content[40:48], "<i2").tolist(), [3, 6, 6, 6])
        with h5py.File(self.folder / "l/3.h5") as file:
            numpy.testing.assert_array_equal(numpy.frombuffer(content[352:], "u1").reshape(6, 6, 6), file["prediction"][...])

    def test_bad_weights_and_bad_runs(self):
        weights = self.train("v", "steps=1")
        for command in (["evaluate", "v.yaml"], ["infer", "v.yaml", "--input", "v", "--output", "p"]):
            for ranks in ([], ["--ranks", 2]):
                self.expect_error(66, "cannot open 'none.safetensors'", *command, "--weights", "none.safetensors", *ranks)
                self.expect_error(65, "v/0.h5'", *command, "--weights", "v/0.h5", *ranks)
            self.expect_error(64, "--weights is required", *command)
        other = self.train("s", "steps=1")
        self.expect_error(65, "lacks tensors of values", "evaluate", "v.yaml", "--weights", other)
        self.expect_error(65, "lacks tensors of values", "infer", "v.yaml", "--weights", other, "--input", "v", "--output", "p")
        self.expect_error(64, "the run has no validation part", "evaluate", "v.yaml", "validation.fraction=0", "--weights", weights, "--validation")
        self.expect_error(65, "only one sample or universe", "train", "v.yaml", "data.files=v/0.h5", "output=o")
        self.expect_error(65, "give a fraction of the data or files", "train", "v.yaml", "validation.files=v", "output=o")
        self.expect_error(65, "validation.inputs goes with data of kind: npy", "train", "v.yaml", "validation={inputs: x}", "output=o")
        self.expect_error(66, "cannot open 'no.h5'", "train", "v.yaml", "validation={files: no.h5}", "output=o")
        self.assertFalse((self.folder / "p").exists() or (self.folder / "o").exists())

    def test_bad_inputs_of_infer(self):
        weights = self.train("v", "steps=1")
        infer = ["infer", "v.yaml", "--weights", weights, "--output", "p", "--input"]
        self.expect_error(66, "cannot open 'none.h5'", *infer, "none.h5")
        self.expect_error(65, "s/0.h5:volume' has shape 6x6x6, but the network wants 2x6x6x6", *infer, "s/0.h5")
        self.write("bad.h5", b"x" * 3000)
        self.expect_error(65, "bad.h5' is not an HDF5 file", *infer, "bad.h5")
        self.write("a.nii", b"x")
        self.expect_error(65, "orthant data convert", *infer, "a.nii")
        self.expect_error(65, "two samples would both be written", "infer", "s.yaml", "--weights", self.train("s", "steps=1"), "--output", "p",
                          "--input", "s/0.h5", "./s/0.h5")
        self.expect_error(64, "--labels: values predicts values", *infer, "v", "--labels")
        self.expect_error(64, "use csv or json", *infer, "v", "--format", "nifti")
        self.assertFalse((self.folder / "p").exists())
        self.expect_success(*infer, "v")
        self.expect_error(74, "predictions.csv' exists already", *infer, "v")
        with h5py.File(self.folder / "nan.h5", "w") as file:
            file["full"] = numpy.full((6, 6, 6, 2), numpy.nan, "f4")
        self.expect_error(65, "holds nan", *infer, "nan.h5", "--overwrite")
        self.write("file", b"")
        self.expect_error(74, "cannot make the directory 'file/p'", "infer", "v.yaml", "--weights", weights, "--input", "v", "--output", "file/p")


if __name__ == "__main__":
    unittest.main()
