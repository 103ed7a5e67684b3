"""Two hosts of two ranks: results as on one host, and hosts that are wrong, out of reach, different or lost.

usage: cluster_test.py <orthant> <fault program> [all]      with `all`, every command under every grid
"""

import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from cluster import Cluster  # noqa: E402
from job import Job, until  # noqa: E402
from program import PROGRAM, ProgramTest  # noqa: E402
from ranks_test import PLAIN, read_safetensors, safetensors_bytes  # noqa: E402

FAULT_PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
ALL = "all" in sys.argv
sys.argv = [word for word in sys.argv if word != "all"]
CLUSTER = Cluster(2)
HOSTS = "node1:2,node2:2"
# Under p2 there are two ranks, one on each host.
PAIR = "node1:1,node2:1"
INPUTS = {"cosmoflow": (4, 32, 32, 32), "resnet18": (3, 64, 64)}
GRIDS = {"cosmoflow": ["n4", "n2d2", "d4", "n2f2", "p2"], "resnet18": ["n4", "n2h2", "h4", "n2f2", "p2"]}
if not ALL:
    GRIDS = {"cosmoflow": ["n2d2"], "resnet18": ["p2"]}
BENCH = ["bench", "step", "cosmoflow", "--input", "4x32x32x32", "--algorithm", "rule", "--threads", 1]


def hosts_for(grid):
    return PAIR if grid == "p2" else HOSTS


def parts_of(tensors):
    """All numbers of a file in one list."""
    return numpy.concatenate([tensors[name].ravel() for name in sorted(tensors)])


class ClusterTest(ProgramTest):
    def start(self, job, *words):
        """A command on the first host of the cluster."""
        return subprocess.Popen(CLUSTER.words(*words), cwd=self.folder, env=job.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def run_on_hosts(self, *arguments, before=(), environment={}):
        """Exit code, stdout and stderr of a job that leaves nothing behind."""
        with Job({"OMP_WAIT_POLICY": "passive", **environment}) as job:
            process = self.start(job, *before, PROGRAM, *arguments)
            out, errors = job.run(process)
            job.expect_nothing_left(self)
        return process.returncode, out, errors

    def expect_on_hosts(self, *arguments):
        code, out, errors = self.run_on_hosts(*arguments)
        self.assertEqual(code, 0, f"{arguments}: {errors}")
        return out

    def expect_refusal(self, code, message, *arguments, **options):
        """One line, and no rank has run."""
        found, out, errors = self.run_on_hosts(*arguments, **options)
        self.assertEqual((found, out), (code, ""), errors)
        self.assertRegex(errors, f"^error: [^\n]*{message}[^\n]*\n$")


class Results(ClusterTest):
    def both(self, network, grid, *arguments, output):
        """What a command leaves with all ranks on one host, and with half of them on another."""
        common = [*arguments, "--grid", grid, "--algorithm", "rule", "--threads", 1]
        written = [argument.replace("OUT", "one") if isinstance(argument, str) else argument for argument in common]
        self.expect_success(*written)
        written = [argument.replace("OUT", "two") if isinstance(argument, str) else argument for argument in common]
        self.expect_on_hosts(*written, "--hosts", hosts_for(grid))
        return [self.folder / output.replace("OUT", name) for name in ("one", "two")]

    def expect_same_tensors(self, paths):
        one, two = (parts_of(read_safetensors(path)) for path in paths)
        self.assertLess(numpy.linalg.norm(two - one), 1e-5 * numpy.linalg.norm(one))

    def write_samples(self, network):
        random = numpy.random.default_rng(0)
        numpy.save(self.folder / "x.npy", random.standard_normal((4, *INPUTS[network]), "f4"))
        targets = random.uniform(-1, 1, (4, 4)).astype("f4") if network == "cosmoflow" else numpy.arange(4, dtype="i8")
        numpy.save(self.folder / "y.npy", targets)
        shape = "x".join(map(str, INPUTS[network]))
        self.write("run.yaml", f"model: {network}\ninput: {shape}\nmini_batch: 4\nsteps: 3\nlearning_rate: 0.001\n"
                               "data: {kind: npy, inputs: x.npy, targets: y.npy}\n")

    def test_commands_give_what_they_give_on_one_host(self):
        for network, grids in GRIDS.items():
            for grid in grids:
                with self.subTest(network=network, grid=grid):
                    self._folder.cleanup()
                    self.setUp()
                    self.expect_same_results(network, grid)

    def expect_same_results(self, network, grid):
        self.write_samples(network)
        paths = self.both(network, grid, "train", "run.yaml", "output=OUT-run", output="OUT-run")
        losses = [[float(row["loss"]) for row in csv.DictReader((path / "metrics.csv").read_text().splitlines())] for path in paths]
        self.assertEqual(len(losses[0]), 3)
        numpy.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
        self.expect_same_tensors([path / "weights.safetensors" for path in paths])

        weights = "one-run/weights.safetensors"
        if ALL or network == "cosmoflow":
            step = self.both(network, grid, "step", network, "--weights", weights, "--input", "x.npy", "--target", "y.npy",
                             "--dump", "OUT-step", output="OUT-step")
            self.expect_same_tensors([path / "gradients.safetensors" for path in step])
            self.expect_same_tensors([path / "outputs.safetensors" for path in step])
        self.expect_same_evaluation(network, grid, weights)

    def expect_same_evaluation(self, network, grid, weights):
        common = ["run.yaml", "--weights", weights, "--grid", grid, "--algorithm", "rule", "--threads", 1]
        one = json.loads(self.expect_success("evaluate", *common, "--json"))
        two = json.loads(self.expect_on_hosts("evaluate", *common, "--json", "--hosts", hosts_for(grid)))
        self.assertAlmostEqual(two["loss"] / one["loss"], 1, delta=1e-5)

        infer = self.both(network, grid, "infer", "run.yaml", "--weights", weights, "--input", "x.npy", "--output", "OUT-infer",
                          output="OUT-infer")
        tables = [list(csv.reader((path / "predictions.csv").read_text().splitlines())) for path in infer]
        self.assertEqual(tables[0][0], tables[1][0])
        numbers = [[[float(value) for value in row[1:]] for row in table[1:]] for table in tables]
        self.assertEqual(len(numbers[0]), 4)
        numpy.testing.assert_allclose(numbers[1], numbers[0], rtol=1e-4, atol=1e-5)

    def test_step_on_whole_numbers_equals_one_rank_bit_for_bit(self):
        random = numpy.random.default_rng(0)
        whole = lambda shape: random.integers(-1, 2, shape).astype("f4")
        numpy.save(self.folder / "x.npy", whole((4, 2, 8, 8, 8)))
        numpy.save(self.folder / "y.npy", whole((4, 4)))
        self.write("plain.yaml", PLAIN)
        step = ["step", "plain.yaml", "--input", "x.npy", "--target", "y.npy", "--input-gradient", "--threads", 1, "--algorithm", "rule"]
        self.expect_success(*step, "--dump", "shapes")
        shapes = read_safetensors(self.folder / "shapes/gradients.safetensors")
        self.write("weights.safetensors", safetensors_bytes({name: whole(shapes[name].shape) for name in shapes if name != "input"}))
        step += ["--weights", "weights.safetensors"]
        self.expect_success(*step, "--dump", "one")
        wanted = read_safetensors(self.folder / "one/gradients.safetensors")
        for grid in ["n4", "n2d2", "d4", "n2f2", "p2"] if ALL else ["n4", "d4"]:
            with self.subTest(grid=grid):
                self.expect_on_hosts(*step, "--dump", grid, "--grid", grid, "--hosts", hosts_for(grid))
                found = read_safetensors(self.folder / grid / "gradients.safetensors")
                for name, gradient in wanted.items():
                    self.assertTrue(numpy.array_equal(found[name], gradient), name)

    def bytes_of_step(self, grid, *arguments):
        """Bytes that all ranks send in a step, and bytes that stay where they are because a host has them in common."""
        result = json.loads(self.expect_on_hosts(*BENCH, "--batch", 4, "--steps", 1, "--warmup", 0, "--json", "--grid", grid,
                                                 "--hosts", HOSTS, *arguments))
        return result["bytes_sent"], result["bytes_announced"]

    def test_hosts_have_weights_in_common_and_send_half_as_much_to_each_other(self):
        """In one level a rank sends three quarters of the weights twice, two thirds of it to the other host; in two levels,
        where nothing moves inside a host, a quarter of them twice."""
        flat, flat_announced = self.bytes_of_step("n4", "--levels", 1)
        sent, announced = self.bytes_of_step("n4")
        self.assertEqual(flat_announced, 0)
        self.assertGreater(announced, 0)
        self.assertAlmostEqual(sent / (flat * 2 / 3), 0.5, delta=0.02)

    def test_ranks_fill_hosts_in_order_and_have_processors_of_their_own(self):
        """Slots that nobody needs stay empty, and OMP_NUM_THREADS counts for ranks that are there, not for new ones."""
        self.write("hosts", "# two of three\nnode1 slots=2\nnode2 slots=4\n")
        code, out, errors = self.run_on_hosts(*BENCH[:-2], "--grid", "d3", "--steps", 1, "--hostfile", "hosts",
                                              environment={"OMP_NUM_THREADS": "7"})
        self.assertEqual((code, errors), (0, ""))
        hosts = [line.split("host ")[1].split(",")[0] for line in out.splitlines() if line.startswith("rank ")]
        self.assertEqual(hosts, ["node1", "node1", "node2"])
        processors = os.cpu_count()
        threads = 2 * max(1, processors // 2) + processors
        self.assertIn(f"that {threads} threads reach", out)


class Faults(ClusterTest):
    def test_wrong_hosts_are_refused(self):
        self.expect_refusal(71, "nothing can be started on host 'node7': cluster: could not resolve hostname node7", *BENCH,
                            "--hosts", "node1:2,node7:2")
        self.expect_refusal(71, "4 ranks need as many slots, but node1:2,node2:1 has 3", *BENCH, "--grid", "d4",
                            "--hosts", "node1:2,node2:1")
        self.expect_refusal(64, "'node1' is there twice", *BENCH, "--hosts", "node1:2,node1:2")
        self.expect_refusal(64, "'node1:0' has no number of slots", *BENCH, "--hosts", "node1:0")
        self.expect_refusal(66, "cannot open 'none'", *BENCH, "--hostfile", "none")
        self.write("hosts", "node1 slots=two\n")
        self.expect_refusal(65, "hosts:1: 'slots=two' is not understood", *BENCH, "--hostfile", "hosts")

    def test_host_out_of_reach_is_refused(self):
        CLUSTER.expect("unplug", "node2")
        self.addCleanup(CLUSTER.expect, "plug", "node2")
        self.expect_refusal(71, "nothing can be started on host 'node2': cluster: connect to host node2: no route to host", *BENCH,
                            "--hosts", HOSTS)

    def agent(self, preparation):
        """An agent that prepares a host before it enters it."""
        entering = f'exec {CLUSTER.words()[0]} --name {CLUSTER.name} agent "$@"'
        self.write("agent", f"#!/usr/bin/env bash\nexec unshare --mount bash -c '{preparation}; {entering}' _ \"$@\"\n")
        (self.folder / "agent").chmod(0o755)
        return ["env", f"OMPI_MCA_plm_rsh_agent={self.folder}/agent"]

    def test_other_version_on_a_host_is_refused(self):
        version = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True).stdout.strip()
        build = bytes.fromhex(version.split("build ")[1])
        content = PROGRAM.read_bytes()
        self.assertEqual(content.count(build), 1)
        self.write("other", content.replace(build, bytes(reversed(build))))
        (self.folder / "other").chmod(0o755)
        before = self.agent(f"mount --bind {self.folder}/other {PROGRAM}")
        self.expect_refusal(76, f"host 'node2' has orthant .*{build[::-1].hex()}, but this machine has {version}; install", *BENCH,
                            "--hosts", HOSTS, before=before)

    def test_missing_directory_on_a_host_is_refused(self):
        (self.folder / "data").mkdir()
        before = self.agent(f"mount -t tmpfs tmpfs {self.folder}; cd /") + ["env", "-C", str(self.folder / "data")]
        # The agent itself is in the directory that the host does not have, so it is copied to another place.
        agent = pathlib.Path(self._folder.name + "-agent")
        agent.write_bytes((self.folder / "agent").read_bytes())
        agent.chmod(0o755)
        self.addCleanup(agent.unlink)
        before[1] = f"OMPI_MCA_plm_rsh_agent={agent}"
        self.expect_refusal(66, f"host 'node2' has no directory '{self.folder}/data'", *BENCH, "--hosts", HOSTS, before=before)

    def expect_end(self, happens, message):
        """The job ends in seconds, a line says why, and no process is left. A lost host cannot remove its files."""
        with Job({"OMP_WAIT_POLICY": "passive", "ORTHANT_LINK_SECONDS": "4"}) as job:
            process = self.start(job, PROGRAM, *BENCH, "--grid", "d4", "--steps", 1_000_000, "--hosts", HOSTS)
            for line in process.stdout:
                if line.startswith("arena"):
                    break
            time.sleep(1)
            begin = time.monotonic()
            happens()
            _, text = job.run(process)
            self.assertLess(time.monotonic() - begin, 60)
            until(lambda: not job.processes(), 60)
            self.assertEqual(job.processes(), [])
        errors = [line for line in text.splitlines() if line.startswith("error: ")]
        self.assertNotEqual(process.returncode, 0)
        self.assertEqual(len(errors), 1, text)
        self.assertRegex(errors[0], message)

    def test_job_ends_when_all_processes_of_a_host_are_killed(self):
        self.expect_end(lambda: CLUSTER.expect("kill", "node2"),
                        r"^error: host 'node2' \(ranks 2, 3\) is lost: all its processes ended without a message$")

    def test_job_ends_when_a_link_goes_down(self):
        self.addCleanup(CLUSTER.expect, "plug", "node2")
        self.expect_end(lambda: CLUSTER.expect("unplug", "node2"), r"^error: host 'node2' \(ranks 2, 3\) is lost: no answer for 4 s")

    def test_rank_that_is_killed_on_another_host_is_named_once(self):
        def kill_one():
            ranks = [pid for pid in CLUSTER.processes("node2") if pathlib.Path(f"/proc/{pid}/comm").read_text() == "orthant\n"]
            self.assertEqual(len(ranks), 2)
            os.kill(int(ranks[0]), signal.SIGKILL)

        self.expect_end(kill_one, r"^error: rank [23] \(pid \d+\) ended without a message")


    def test_rank_that_is_alone_on_its_host_is_named_once(self):
        lost = r"^error: host 'node2' \(rank 1\) is lost: all its processes ended without a message$"
        for fault, code, message in [("throw", 65, "^error: rank 1: the sample is bad$"), ("exit", 3, lost), ("kill", 137, lost)]:
            with self.subTest(fault=fault), Job({}) as job:
                process = self.start(job, "mpirun", "--quiet", "--host", PAIR, "-np", 2, "--bind-to", "none", FAULT_PROGRAM, fault, 1)
                _, text = job.run(process)
                job.expect_nothing_left(self)
                self.assertEqual(process.returncode, code, text)
                errors = [line for line in text.splitlines() if line.startswith("error: ")]
                self.assertEqual(len(errors), 1, text)
                self.assertRegex(errors[0], message)


class Script(unittest.TestCase):
    def test_mistakes_are_named(self):
        for words, code, message in [(["up"], 64, "usage"), (["up", "0"], 64, "'0' hosts are not possible"), (["fly"], 64, "usage"),
                                     (["unplug", "node9"], 66, "there is no host 'node9'"), (["up", "2"], 74, "exists; remove it with")]:
            result = CLUSTER.call(*words)
            self.assertEqual(result.returncode, code, words)
            self.assertIn(message, result.stderr)

    def test_clusters_do_not_see_each_other(self):
        other = Cluster(1)
        other.expect("up", 1)
        self.addCleanup(other.down)
        self.assertEqual(other.call("run", "hostname").stdout, "node1\n")
        self.assertNotEqual(other.call("agent", "node2", "true").returncode, 0)
        self.assertEqual(CLUSTER.call("agent", "node2", "hostname").stdout, "node2\n")

    def test_other_users_are_told_why_it_does_not_work(self):
        result = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", *CLUSTER.words()[:1], "up", "2"], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (77, "cluster: only root can make hosts of network namespaces; run this as root\n"))


if __name__ == "__main__":
    CLUSTER.up_or_skip()
    try:
        unittest.main()
    finally:
        CLUSTER.down()
