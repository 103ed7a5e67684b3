"""plan, calibrate and bench oracle: what they say, and what they say to files and numbers that cannot be."""

import csv
import json
import os
import pathlib
import unittest
import xml.etree.ElementTree

from program import ProgramTest

NETWORK = """name: small
input: 4x16x16x16
layers:
  - {name: conv1, op: conv, filters: 8, kernel: 3, pad: 1}
  - {name: act1, op: relu}
  - {name: pool1, op: max_pool, kernel: 2}
  - {name: conv2, op: conv, filters: 8, kernel: 3, pad: 1}
  - {name: flatten, op: flatten}
  - {name: fc1, op: dense, features: 4}
loss: mean_squared_error
"""
STRATEGIES = ["data", "spatial", "filter", "channel", "pipeline", "data+filter", "data+spatial"]
PROFILES = pathlib.Path(__file__).resolve().parents[2] / "orthant/oracle/profiles"


class PlanTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("net.yaml", NETWORK)

    def plan(self, *words, machine="cpu-cluster", network="net.yaml"):
        return ["plan", network, "--machine", machine, *words]

    def answer(self, *words, **options):
        return json.loads(self.expect_success(*self.plan(*words, "--json", **options)))


class Plans(PlanTest):
    def test_the_table_has_every_strategy_and_says_why(self):
        text = self.expect_success(*self.plan("--ranks", 4, "--batch", 4))
        for word in [*STRATEGIES, "best ", "because ", "time ", "memory ", "known ", "what if", "nodes "]:
            self.assertIn(word, text)

    def test_the_best_is_no_slower_than_any_strategy(self):
        answer = self.answer("--ranks", 4, "--batch", 4)
        self.assertEqual([one["name"] for one in answer["strategies"]], STRATEGIES)
        for one in answer["strategies"]:
            if "seconds" in one:
                self.assertLessEqual(answer["best"]["seconds"], one["seconds"] * (1 + 1e-9), one["name"])
        self.assertAlmostEqual(sum(answer["best"]["parts_seconds"].values()), answer["best"]["seconds"], delta=1e-9)

    def test_a_searched_plan_runs_in_the_memory_that_was_foretold(self):
        foretold = self.answer("--ranks", 2, "--batch", 2, "--ranks-per-machine", 2, "-o", "best.json")
        measured = json.loads(self.expect_success("bench", "step", "net.yaml", "--batch", 2, "--ranks", 2, "--plan", "best.json",
                                                  "--algorithm", "rule", "--steps", 1, "--warmup", 1, "--json"))
        # The shipped profile knows nothing of the scratch memory of kernels.
        scratch = measured["arena_bytes"] - foretold["best"]["memory_bytes"]["arena"]
        self.assertGreaterEqual(scratch, 0)
        self.assertLess(scratch, 4 << 20)

    def test_sweeps_are_tables_files_and_pictures(self):
        text = self.expect_success(*self.plan("--batch", 4, "--sweep", "ranks=1..4", "--csv", "s.csv", "--svg", "s.svg"))
        self.assertIn("strong", text)
        with open(self.folder / "s.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({int(row["ranks"]) for row in rows}, {1, 2, 4})
        xml.etree.ElementTree.parse(self.folder / "s.svg")

    def test_more_ranks_than_samples_is_a_row_that_says_why(self):
        answer = self.answer("--ranks", 8, "--batch", 2)
        data = next(one for one in answer["strategies"] if one["name"] == "data")
        self.assertIn("mini-batch", data["refused"])
        self.assertIn("mini-batch", self.expect_success(*self.plan("--ranks", 8, "--batch", 2)))
        self.assertTrue(answer["best"]["fits"])

    def test_a_hundred_thousand_ranks_have_an_answer(self):
        answer = self.answer("--ranks", 100000, "--batch", 100000, "--strategy", "data")
        self.assertGreater(answer["best"]["seconds"], 0)

    def test_what_does_not_fit_is_said_with_the_nearest_that_would(self):
        self.expect_error(71, "nothing fits", *self.plan("--ranks", 2, "--batch", 2, "--memory", "64MiB"))
        self.expect_error(71, "ranks", *self.plan("--ranks", 2, "--batch", 64, "--memory", "70MiB"))

    def test_a_prediction_is_compared_with_a_run(self):
        self.expect_success("bench", "step", "net.yaml", "--batch", 2, "--grid", "d2", "--steps", 2, "--trace", "trace.json")
        text = self.expect_success(*self.plan("--ranks", 2, "--batch", 2, "--grid", "d2", "--compare", "trace.json"))
        self.assertIn("accuracy", text)
        self.assertIn("conv1", text)


class Calibration(PlanTest):
    def test_a_second_call_measures_only_what_is_new(self):
        words = ["calibrate", "net.yaml", "--batch", 2, "--threads", 1, "--seconds", 10, "-o", "mine.json", "--json"]
        first = json.loads(self.expect_success(*words))
        self.assertGreater(first["new_tasks"], 0)
        second = json.loads(self.expect_success(*words))
        self.assertEqual(second["new_tasks"], 0)
        answer = self.answer("--ranks", 1, "--batch", 2, "--threads", 1, "--grid", "1", machine="mine.json")
        self.assertEqual(answer["best"]["kernels_known"]["measured"], 1)
        measured = json.loads(self.expect_success("bench", "step", "net.yaml", "--batch", 2, "--threads", 1, "--steps", 1, "--json"))
        self.assertGreater(measured["arena_bytes"], 0)


class Auto(PlanTest):
    """--strategy auto, with a profile of this machine in a file of the test's own."""

    def setUp(self):
        super().setUp()
        self.profile = str(self.folder / "mine.json")
        self.kept = os.environ.get("ORTHANT_PROFILE")
        os.environ["ORTHANT_PROFILE"] = self.profile

    def tearDown(self):
        os.environ.pop("ORTHANT_PROFILE")
        if self.kept is not None:
            os.environ["ORTHANT_PROFILE"] = self.kept
        super().tearDown()

    def test_the_best_plan_is_searched_and_run(self):
        self.expect_success("calibrate", "net.yaml", "--batch", 4, "--ranks", 2, "--strategy", "data", "--seconds", 10)
        result = self.run_program("bench", "step", "net.yaml", "--batch", 4, "--ranks", 2, "--strategy", "auto", "--steps", 2, "--write-plan", "used.json", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("plan: ", result.stderr)
        self.assertEqual(json.loads((self.folder / "used.json").read_text())["ranks"], 2)
        # The plan names its kernels, and they were measured: what was foretold of memory holds to the byte.
        foretold = self.answer("--ranks", 2, "--batch", 4, "--ranks-per-machine", 2, "--threads", 1, "--plan", "used.json", machine=self.profile)
        self.assertEqual(foretold["best"]["memory_bytes"]["arena"], json.loads(result.stdout)["arena_bytes"])

    def test_without_a_profile_it_says_how_to_get_one(self):
        self.expect_error(66, "orthant calibrate", "bench", "step", "net.yaml", "--batch", 4, "--ranks", 2, "--strategy", "auto")

    def test_a_profile_of_another_machine_is_refused(self):
        other = json.loads((PROFILES / "cpu-cluster.json").read_text())
        self.write("mine.json", json.dumps({**other, "processor": "Z80"}))
        self.expect_error(65, "Z80", "bench", "step", "net.yaml", "--batch", 4, "--ranks", 2, "--strategy", "auto")


class BadProfiles(PlanTest):
    def setUp(self):
        super().setUp()
        self.profile = json.loads((PROFILES / "cpu-cluster.json").read_text())

    def expect_refused(self, message, text=None, words=("--ranks", 2)):
        self.write("bad.json", json.dumps(self.profile) if text is None else text)
        self.expect_error(65, message, *self.plan(*words, machine="bad.json"))

    def test_version(self):
        self.profile["version"] = 7
        self.expect_refused("version")

    def test_missing_field(self):
        del self.profile["between"]["bytes_per_second"]
        self.expect_refused("bytes_per_second")

    def test_unknown_field(self):
        self.profile["between"]["bandwith"] = 1
        self.expect_refused("bandwith")

    def test_values_that_cannot_be(self):
        for group, key, value in [("between", "bytes_per_second", -1.0), ("between", "bytes_per_second", 0), ("inside", "latency_seconds", -1e-6),
                                  ("machine", "memory_bytes", -5), ("machine", "ranks_per_machine", 0), ("machine", "threads_per_rank", 1e9),
                                  ("between", "bytes_per_second", "fast"), ("between", "error", None)]:
            with self.subTest(key=key, value=value):
                kept = self.profile[group][key]
                self.profile[group][key] = value
                self.expect_refused(key)
                self.profile[group][key] = kept

    def test_not_a_number(self):
        for word in ("NaN", "Infinity", "1e999"):
            with self.subTest(word=word):
                text = json.dumps(self.profile).replace('"bytes_per_second": 12500000000.0', f'"bytes_per_second": {word}')
                self.assertIn(word, text)
                self.expect_refused("bad.json", text)

    def test_no_settings(self):
        self.profile["settings"] = []
        self.expect_refused("settings")

    def test_files_of_other_kinds(self):
        whole = json.dumps(self.profile)
        for text in ("", "{}", "[]", "not json", "\x00\x01\x02", whole[: len(whole) // 2], '{"format": "orthant-plan"}', "[" * 100000):
            with self.subTest(text=text[:20]):
                self.expect_refused("bad.json", text)

    def test_no_such_file(self):
        self.expect_error(66, "none.json", *self.plan("--ranks", 2, machine="none.json"))
        self.expect_error(64, "cpu-cluster", *self.plan("--ranks", 2, machine="cpu-clutser"))

    def test_calibrate_spoils_no_file_of_others(self):
        for text in ("[1, 2", '{"format": "other"}', json.dumps({**self.profile, "processor": "Z80"})):
            with self.subTest(text=text[:20]):
                self.write("mine.json", text)
                self.expect_error(65, "mine.json", "calibrate", "net.yaml", "--threads", 1, "--seconds", 1, "-o", "mine.json")
                self.assertEqual((self.folder / "mine.json").read_text(), text)


class BadQuestions(PlanTest):
    def test_plan_of_another_graph(self):
        self.expect_success(*self.plan("--ranks", 2, "--batch", 2, "-o", "best.json"))
        self.write("other.yaml", NETWORK.replace("conv2", "convolution"))
        self.expect_error(65, "make the plan for this network", *self.plan("--batch", 2, "--plan", "best.json", network="other.yaml"))

    def test_profile_for_a_plan_and_the_other_way_round(self):
        profile = self.write("profile.json", (PROFILES / "cpu-cluster.json").read_bytes())
        self.expect_error(65, "profile.json", *self.plan("--plan", profile))

    def test_ranks(self):
        for ranks in ("0", "-2", "100001", "two", "1e3", "99999999999999999999"):
            with self.subTest(ranks=ranks):
                self.expect_error(64, "--ranks", *self.plan("--ranks", ranks))

    def test_memory(self):
        for memory in ("-1", "lots", "NaN"):
            with self.subTest(memory=memory):
                self.expect_error(64, "memory", *self.plan("--ranks", 2, "--memory", memory))

    def test_sweeps(self):
        for sweep in ("ranks", "ranks=", "ranks=0..4", "ranks=4..2", "ranks=1..1000000", "batch=1..2", "ranks=a..b"):
            with self.subTest(sweep=sweep):
                self.expect_error(64, "--sweep", *self.plan("--sweep", sweep))

    def test_grids_that_cannot_be(self):
        self.expect_error(71, "use --ranks 3", *self.plan("--ranks", 2, "--grid", "d3"))
        self.expect_error(64, "spatil", *self.plan("--ranks", 2, "--strategy", "spatil"))

    def test_runs_to_compare_with(self):
        self.write("trace.json", '{"traceEvents": []}')
        for text in ('{"traceEvents": []}', '{"traceEvents": 5}', "{}", "[", '{"layers": [{"name": "a", "seconds": "x"}], "ranks": 1}'):
            with self.subTest(text=text):
                self.write("run.json", text)
                self.expect_error(65, "run.json", *self.plan("--ranks", 1, "--grid", "1", "--compare", "run.json"))

    def test_cases_of_bench_oracle(self):
        self.expect_error(64, "no case", "bench", "oracle", "--models", "alexnet")
        self.write("results.json", "[]")
        self.expect_error(65, "results.json", "bench", "oracle", "--results", "results.json", "--models", "cosmoflow")


if __name__ == "__main__":
    unittest.main()
