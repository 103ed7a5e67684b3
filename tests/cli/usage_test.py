"""Typos and misuse of the command line: exit code 64 and the nearest known word."""

import unittest

from program import ProgramTest

CASES = [
    ("orthant: unknown command 'trian'; did you mean 'train'?", "trian", "run.yaml"),
    ("orthant: unknown command 'inspec'; did you mean 'inspect'?", "inspec", "cosmoflow"),
    ("orthant: unknown command 'xyzzyplugh'; known are: models, inspect, train, evaluate, infer, export, step, bench, data, plan, calibrate, tune, doctor", "xyzzyplugh"),
    ("orthant: a command is missing; known are: models, inspect",),
    ("orthant: unknown option '--versoin'; did you mean '--version'?", "--versoin"),
    ("orthant bench: unknown command 'kernel'; did you mean 'kernels'?", "bench", "kernel", "cosmoflow"),
    ("orthant bench: a command is missing; known are: step, halo, io, kernels, oracle, schedule", "bench"),
    ("orthant bench step: unknown option '--thread'; did you mean '--threads'?", "bench", "step", "cosmoflow", "--thread", "2"),
    ("orthant bench step: unknown option '--step'; did you mean '--steps'?", "bench", "step", "cosmoflow", "--step=3"),
    ("orthant data: unknown command 'inspct'; did you mean 'inspect'?", "data", "inspct", "a.h5"),
    ("orthant data verify: files is required", "data", "verify"),
    ("orthant data convert: --to is required", "data", "convert", "a.nii"),
    ("orthant data make: unknown command 'cosmolgy'; did you mean 'cosmology'?", "data", "make", "cosmolgy", "x"),
    ("orthant doctor: unknown option '--jsn'; did you mean '--json'?", "doctor", "--jsn"),
    ("orthant doctor: unexpected argument 'me'", "doctor", "me"),
    ("orthant inspect: model is required", "inspect"),
    ("orthant step: --input is required", "step", "cosmoflow"),
    ("orthant train: run is required", "train"),
    ("orthant evaluate: unknown option '--weight'; did you mean '--weights'?", "evaluate", "run.yaml", "--weight", "w"),
    ("--format", "infer", "run.yaml", "--weights", "w", "--input", "a", "--output", "b", "--format", "tiff"),
    ("--steps", "bench", "step", "cosmoflow", "--steps", "many"),
    ("--steps", "bench", "step", "cosmoflow", "--steps", "0"),
    ("--threads", "bench", "step", "cosmoflow", "--threads", "-3"),
    ("--hosts: 'a:0' has no number of slots", "bench", "step", "cosmoflow", "--hosts", "a:0"),
    ("--hosts: 'a' is there twice", "train", "run.yaml", "--hosts", "a:2,b,a"),
    ("--hosts: the value is empty", "bench", "halo", "cosmoflow", "--hosts", ""),
    ("--hosts excludes --hostfile", "bench", "io", "x.h5", "--hosts", "a", "--hostfile", "b"),
    ("--optimizer", "bench", "step", "cosmoflow", "--optimizer", "lamb"),
    ("no network 'cosmoflw' (a file must end in .yaml, .yml or .onnx); did you mean 'cosmoflow'?", "inspect", "cosmoflw"),
    ("no setting 'batchnorm'; did you mean 'batch_norm'?", "inspect", "cosmoflow", "--set", "batchnorm=true"),
    ("128y128", "inspect", "cosmoflow", "--input", "4x128y128"),
    ("no convolution or dense layer 'conv99'", "bench", "kernels", "cosmoflow", "--input", "4x32x32x32", "--layer", "conv99"),
]


class Usage(ProgramTest):
    def test_misuse_is_one_line_with_the_nearest_word(self):
        for message, *arguments in CASES:
            with self.subTest(arguments=arguments):
                self.expect_error(64, message, *arguments)

    def test_help_and_version_go_to_stdout(self):
        self.assertRegex(self.expect_success("--version"), r"^orthant \d+\.\d+\.\d+, build [0-9a-f]{12}\n$")
        for command in ((), ("models",), ("inspect",), ("train",), ("evaluate",), ("infer",), ("step",), ("bench",), ("bench", "step"), ("bench", "halo"), ("bench", "kernels"),
                        ("data",), ("data", "inspect"), ("data", "verify"), ("data", "convert"), ("data", "make"), ("data", "make", "cosmology"),
                        ("data", "make", "organs"), ("plan",), ("calibrate",), ("tune",), ("bench", "oracle"), ("doctor",)):
            self.assertIn("Usage:", self.expect_success(*command, "--help"))

    def test_full_disk_is_an_error(self):
        import subprocess
        from program import PROGRAM
        with open("/dev/full", "w") as full:
            result = subprocess.run([PROGRAM, "models"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 74)
        self.assertIn("cannot write to standard output", result.stderr)


if __name__ == "__main__":
    unittest.main()
