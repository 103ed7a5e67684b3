"""Jobs of several ranks that are told from all other jobs of the machine, and what they leave behind."""

import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time

# Long for a job that ends by itself, even on a machine that others keep busy, and short of the 300 s after which the
# watchdog ends any wait.
SECONDS_TO_END = 120
SECONDS_TO_VANISH = 60


class RunningClock:
    """Seconds in which this process itself could run: what a machine that stops for a while adds to a wait is left out."""

    def __init__(self):
        self._seconds = 0.0
        threading.Thread(target=self._tick, daemon=True).start()

    def _tick(self):
        last = time.monotonic()
        while True:
            time.sleep(0.02)
            now = time.monotonic()
            self._seconds += min(now - last, 0.5)
            last = now

    def now(self):
        return self._seconds


clock = RunningClock()


def until(condition, seconds, period=0.05):
    end = clock.now() + seconds
    while not condition() and clock.now() < end:
        time.sleep(period)
    return condition()


def children(pid):
    """Of a process, which may start some from more than one thread."""
    lists = pathlib.Path(f"/proc/{pid}/task").glob("*/children")
    return sorted(int(word) for path in lists for word in path.read_text().split())


class Job:
    """A folder where Open MPI puts all files of the job, shared memory included. Its path is in the environment of the
    job's processes and of no other."""

    def __init__(self, environment):
        self._temporary = tempfile.TemporaryDirectory(prefix="orthant-job-")
        self.folder = pathlib.Path(self._temporary.name).resolve()
        self.environment = {**os.environ, "TMPDIR": str(self.folder),
                            "OMPI_MCA_btl_vader_backing_directory": str(self.folder), **environment}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def kill(self):
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)

    def end(self):
        self.kill()
        until(lambda: not self.processes(), SECONDS_TO_VANISH)
        self._temporary.cleanup()

    def processes(self):
        """Those of the job, zombies left out."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"TMPDIR={self.folder}\0".encode() in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:
                pass
        return found

    def rank(self, number):
        """The process of a rank."""
        wanted = f"OMPI_COMM_WORLD_RANK={number}\0".encode()
        return next(pid for pid in self.processes() if wanted in pathlib.Path(f"/proc/{pid}/environ").read_bytes())

    def child(self, pid):
        """The process that a process has started; mpirun, if it is the command's."""
        return next(iter(children(pid)))

    def files(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))

    def run(self, process):
        """stdout and stderr of a job that ends; kills one that does not, and raises."""
        end = clock.now() + SECONDS_TO_END
        while True:
            try:
                return process.communicate(timeout=1)
            except subprocess.TimeoutExpired:
                if clock.now() > end:
                    self.kill()
                    raise

    def expect_nothing_left(self, test):
        until(lambda: not self.processes(), SECONDS_TO_VANISH)
        test.assertEqual(self.processes(), [], "processes are left")
        until(lambda: not self.files(), SECONDS_TO_VANISH)
        test.assertEqual(self.files(), [], "files or shared memory are left")
