"""Runs the tests of the workspace one process each, and measures what each costs and what it waits for."""

import dataclasses
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 600
PAUSE = 0.02

# The system call in which the thread of a test is blocked tells what it waits for.
WAITS = {
    "pause": {35, 230},
    "process": {0, 7, 61, 247, 271},
    "network": {42, 43, 45, 47, 232, 281, 288},
    "thread": {202},
}


@dataclasses.dataclass
class Binary:
    """One test binary, and the folder in which cargo runs it."""

    name: str
    path: str
    folder: str


@dataclasses.dataclass
class Outcome:
    """The cost of one test in seconds, and whether it passed."""

    binary: str
    test: str
    passed: bool
    wall: float
    cpu: float
    waits: dict
    output: str

    def waited_for(self):
        """The longest wait and its share of the time, where it is worth a word."""
        if not self.waits:
            return ""
        what, times = max(self.waits.items(), key=lambda wait: wait[1])
        share = times / max(1, sum(self.waits.values()))
        return f"{what} {share:.0%}" if what != "itself" else ""


def build(arguments=(), folder=ROOT):
    """Builds the test binaries that `cargo test` with these arguments would run."""
    command = ["cargo", "test", "--no-run", "--message-format=json", *arguments]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.returncode)
    found = []
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            package = Path(message["manifest_path"]).parent
            name = message["target"]["name"]
            found.append(Binary(name, message["executable"], str(package)))
    return found


def tests_of(binary):
    """The names of the tests that this binary holds and does not ignore."""
    listed = subprocess.run(
        [binary.path, "--list", "--format=terse"], cwd=binary.folder, stdout=subprocess.PIPE, text=True, check=True
    )
    names = [line.removesuffix(": test") for line in listed.stdout.splitlines() if line.endswith(": test")]
    ignored = set(ignored_tests_of(binary))
    return [test for test in names if test not in ignored]


def ignored_tests_of(binary):
    """The names of the tests that this binary holds and runs only when asked to."""
    command = [binary.path, "--list", "--format=terse", "--ignored"]
    listed = subprocess.run(command, cwd=binary.folder, stdout=subprocess.PIPE, text=True, check=True)
    return [line.removesuffix(": test") for line in listed.stdout.splitlines() if line.endswith(": test")]


def run(binary, test, environment=None, limit=LIMIT):
    """Runs one test in a process of its own. The time of its children counts as its own."""
    with tempfile.TemporaryFile() as output:
        started = time.monotonic()
        process = subprocess.Popen(
            [binary.path, "--exact", test, "--test-threads=1", "--nocapture", "--include-ignored"],
            cwd=binary.folder,
            env={**os.environ, "CARGO_MANIFEST_DIR": binary.folder, **(environment or {})},
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )
        ended = threading.Event()
        waits = {}
        watcher = threading.Thread(target=_watch, args=(process.pid, test, ended, waits, started + limit))
        watcher.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        ended.set()
        watcher.join()
        output.seek(0)
        text = output.read().decode(errors="replace")
    cpu = usage.ru_utime + usage.ru_stime
    return Outcome(binary.name, test, process.returncode == 0, wall, cpu, waits, text)


def run_all(
    binaries, jobs, wanted=lambda binary, test: True, environment=None, seen=lambda outcome: None, listed=tests_of
):
    """Runs all wanted tests, so many at a time. `environment` gives the variables of one test."""
    chosen = [(binary, test) for binary in binaries for test in listed(binary) if wanted(binary, test)]

    def one(pair):
        outcome = run(*pair, environment(*pair) if environment else None)
        seen(outcome)
        return outcome

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, chosen))


def _watch(pid, test, ended, waits, deadline):
    """Looks every few milliseconds at what the test's own thread waits for. Ends the test after the limit."""
    thread = None
    while not ended.wait(PAUSE):
        thread = thread or _thread_of(pid, test)
        kind = _waits_for(pid, thread or pid)
        waits[kind] = waits.get(kind, 0) + 1
        if time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
            return


def _thread_of(pid, test):
    """The thread that runs the test: the test runner names it after the test, cut at 15 bytes."""
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            if Path(f"/proc/{pid}/task/{thread}/comm").read_text().rstrip("\n") == test[:15]:
                return thread
    except OSError:
        pass
    return None


def _waits_for(pid, thread):
    try:
        text = Path(f"/proc/{pid}/task/{thread}/syscall").read_text()
    except OSError:
        return "itself"
    number = text.split()[0]
    if number in ("running", "-1"):
        return "itself"
    for kind, numbers in WAITS.items():
        if int(number) in numbers:
            return kind
    return "itself"
