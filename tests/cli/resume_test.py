"""Runs that are asked to stop, leave a checkpoint and go on: signals, a time limit, the same command again."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from program import PROGRAM, ProgramTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import SECONDS_TO_END, Job, until  # noqa: E402
from runs import write_run  # noqa: E402

class Resume(ProgramTest):
    def setUp(self):
        super().setUp()
        write_run(self.folder, steps=1000000, optimizer="sgd", learning_rate=0.0001, data="{kind: synthetic, samples: 8}")

    def start(self, job, *arguments):
        return subprocess.Popen([PROGRAM, "train", "run.yaml", "--threads", "1", "--algorithm", "rule", *arguments], cwd=self.folder,
                                env=job.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for_steps(self, process, output, count=3):
        metrics = self.folder / output / "metrics.csv"
        self.assertTrue(until(lambda: process.poll() is not None or (metrics.exists() and metrics.read_text().count("\n") > count),
                              SECONDS_TO_END))
        self.assertIsNone(process.poll())

    def expect_stop(self, process, job, output, cause="stopped by a signal"):
        """Exit code 85, and a checkpoint of the last step that was done."""
        text, errors = job.run(process)
        self.assertEqual(process.returncode, 85, errors + text)
        self.assertRegex(errors, f"error: {cause} after step .*; go on with --resume")
        rows = (self.folder / output / "metrics.csv").read_text().splitlines()
        last = int(rows[-1].split(",")[0])
        self.assertTrue((self.folder / output / f"checkpoints/step-{last}/manifest.json").exists(), os.listdir(self.folder / output))
        return last

    def test_signals_leave_a_checkpoint(self):
        for ranks in (1, 2, 3):
            for number, (name, target) in enumerate([("SIGTERM", "all"), ("SIGINT", "all"), ("SIGUSR1", "all"), ("SIGTERM", "rank"),
                                                     ("SIGUSR1", "rank"), ("SIGUSR1", "command"), ("SIGTERM", "command"),
                                                     ("SIGINT", "command")]):
                if ranks == 1 and target != "command" and number > 2:
                    continue
                with self.subTest(ranks=ranks, signal=name, target=target), Job({"OMP_NUM_THREADS": "1"}) as job:
                    output = f"out-{ranks}-{number}"
                    # Three parts of the depth would be thinner than their halos.
                    process = self.start(job, f"output={output}", "--grid", "f3" if ranks == 3 else f"d{ranks}")
                    self.wait_for_steps(process, output)
                    wanted = getattr(signal, name)
                    if ranks == 1 or target == "command":
                        process.send_signal(wanted)
                    else:
                        for rank in range(ranks) if target == "all" else [ranks - 1]:
                            os.kill(job.rank(rank), wanted)
                    self.expect_stop(process, job, output)

    def test_the_same_command_goes_on(self):
        outputs = []
        for number, grid in enumerate(("n1", "d2")):
            output = f"auto-{number}"
            last = 0
            for _ in range(2):
                with Job({"OMP_NUM_THREADS": "1"}) as job:
                    process = self.start(job, f"output={output}", "--grid", grid, "--resume", "auto")
                    self.wait_for_steps(process, output, last + 3)
                    process.send_signal(signal.SIGUSR1)
                    stopped = self.expect_stop(process, job, output)
                    self.assertGreater(stopped, last)
                    last = stopped
            outputs.append(last)
            text = self.expect_success("train", "run.yaml", f"output={output}", f"steps={last + 2}", "--grid", grid, "--resume", "auto",
                                       "--json", "--threads", "1", "--algorithm", "rule")
            self.assertEqual(json.loads(text)["resumed_step"], last)
            # A run that is done stays done.
            text = self.expect_success("train", "run.yaml", f"output={output}", f"steps={last + 2}", "--grid", grid, "--resume", "auto",
                                       "--json", "--threads", "1", "--algorithm", "rule")
            self.assertEqual(json.loads(text)["resumed_step"], last + 2)

    def test_a_run_stops_in_time(self):
        for ranks in (1, 2):
            with self.subTest(ranks=ranks), Job({"OMP_NUM_THREADS": "1", "SLURM_JOB_END_TIME": str(int(time.time()) + 8)}) as job:
                process = self.start(job, f"output=slurm-{ranks}", "--grid", f"d{ranks}")
                self.expect_stop(process, job, f"slurm-{ranks}", "stopped in time")

    def test_a_second_interrupt_ends_at_once(self):
        with Job({"OMP_NUM_THREADS": "1"}) as job:
            process = self.start(job, "output=twice", "mini_batch=64", "data.samples=64", "input=2x64x64x64")
            self.wait_for_steps(process, "twice", 1)
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            job.run(process)
            self.assertEqual(process.returncode, -signal.SIGINT)

    def test_mistakes_are_named(self):
        self.expect_error(66, "there is no run to go on with", "train", "run.yaml", "--resume", "steps=1")
        self.expect_error(66, "'nowhere' is not a directory", "train", "run.yaml", "--resume", "nowhere")
        self.expect_error(64, "--stop-at: 'late' is no time", "train", "run.yaml", "--stop-at", "late", "output=never")
        for text, message in [("optimizer={kind: adam, beta1: 1}", "beta1 is 1; it must be from 0 on and below 1"),
                              ("optimizer={kind: adam, epsilon: 0}", "epsilon is 0; it must be from"),
                              ("optimizer={kind: adam, beta2: -0.1}", "beta2 is -0.1"),
                              ("optimizer={momentum: 1}", "momentum is 1"),
                              ("learning_rate=-1", "base is -1; it must be from 0"),
                              ("learning_rate=.nan", "must be a number"),
                              ("checkpoint={every: 0}", "every is 0"),
                              ("checkpoint={every: 5, minutes: 1}", "give every or minutes, not both"),
                              ("checkpoint=often", "unknown checkpoint"),
                              ("on_non_finite=skip", "skip needs a number"),
                              ("on_checkpoint_error=ignore", "on_checkpoint_error")]:
            with self.subTest(text=text):
                self.expect_error(65, message, "train", "run.yaml", text, "output=never")
        self.assertFalse((self.folder / "never").exists())

    def test_weights_that_are_not_finite_do_not_replace_others(self):
        self.expect_success("train", "run.yaml", "output=numbers", "steps=2", "--algorithm", "rule")
        before = (self.folder / "numbers/weights.safetensors").read_bytes()
        self.expect_error(87, " at step ", "train", "run.yaml", "output=numbers", "overwrite=true", "steps=50", "save_every=1",
                          "learning_rate=1e6", "--algorithm", "rule")
        after = (self.folder / "numbers/weights.safetensors").read_bytes()
        self.assertEqual(len(before), len(after))
        length = int.from_bytes(after[:8], "little")
        import numpy
        self.assertTrue(numpy.isfinite(numpy.frombuffer(after[8 + length:], "<f4")).all())


if __name__ == "__main__":
    unittest.main()
