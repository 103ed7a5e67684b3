"""Hosts that are network namespaces of this machine: scripts/cluster.sh for tests."""

import os
import pathlib
import subprocess
import sys
import uuid

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/cluster.sh"
# CTest takes this exit code for a test that could not run.
SKIPPED = 77


class Cluster:
    """Hosts node1, node2, ... with a name of their own on this machine, so that several tests can have some at once."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.name = f"test-{uuid.uuid4().hex[:12]}"

    def call(self, *words):
        return subprocess.run([SCRIPT, "--name", self.name, *map(str, words)], capture_output=True, text=True)

    def expect(self, *words):
        result = self.call(*words)
        if result.returncode != 0:
            raise RuntimeError(f"cluster.sh {words}: {result.stderr}")

    def words(self, *command):
        """The words that run a command on the first host."""
        return [str(SCRIPT), "--name", self.name, "run", *map(str, command)]

    def up_or_skip(self):
        """Makes the hosts. Where the system does not allow that, says why and ends the program as skipped."""
        result = self.call("up", self.hosts)
        if result.returncode == SKIPPED:
            print(f"skipped: {os.path.basename(sys.argv[0])}: {result.stderr.strip()}")
            sys.exit(SKIPPED)
        if result.returncode != 0:
            raise RuntimeError(result.stderr)

    def processes(self, host):
        result = subprocess.run(["ip", "netns", "pids", f"{self.name}-{host}"], capture_output=True, text=True)
        return result.stdout.split()

    def down(self):
        self.expect("down")
