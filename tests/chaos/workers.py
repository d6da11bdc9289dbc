"""Runs cases in parallel worker processes; a case that hangs is killed with its worker, and is a finding."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import tempfile
import time
import traceback
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.chaos.case import Case, Fault, Finding, Kind, Result
from tests.chaos.processes import end_marked

GRACE = 20.0
"""Seconds beyond a case's own limit, for a machine that is busy."""


@dataclass(eq=False)
class Worker:
    """One process; it plays the cases that it is sent, one after the other."""

    process: BaseProcess
    pipe: Connection
    case: Case | None = None
    deadline: float = 0.0

    def end(self) -> None:
        """Kill it, and the servers that it started."""
        assert self.process.pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run_all(cases: Iterable[Case], kinds: Mapping[str, Kind], *, jobs: int) -> Generator[tuple[Case, Result]]:
    """Each case with its result, in the order in which they end; closed early, it ends and removes what is left."""
    waiting = iter(cases)
    root = Path(tempfile.mkdtemp(prefix="servetop-chaos-"))
    root.chmod(0o755)  # some cases act as another user
    idle = [_started(kinds, root) for _ in range(jobs)]
    busy: list[Worker] = []
    try:
        while True:
            while idle and (case := next(waiting, None)) is not None:
                worker = idle.pop()
                worker.case = case
                worker.deadline = time.monotonic() + kinds[case.kind].seconds + GRACE
                worker.pipe.send(case)
                busy.append(worker)
            if not busy:
                return
            for worker, result in _ended(busy):
                assert worker.case is not None
                busy.remove(worker)
                idle.append(worker if worker.process.is_alive() else _started(kinds, root))
                yield worker.case, result
    finally:
        for worker in [*idle, *busy]:
            worker.end()
            if worker in busy and worker.case is not None:
                end_marked(worker.case.mark)
        _remove(root)


def _remove(root: Path) -> None:
    """A folder with all in it, also small disks that a case had no time to take away."""
    mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in mounted:
        if place.startswith(f"{root}/"):
            subprocess.run(["umount", "--lazy", place], check=False)
    shutil.rmtree(root, ignore_errors=True)


def _ended(busy: list[Worker]) -> Iterator[tuple[Worker, Result]]:
    """Workers that responded, died or timed out within half a second."""
    spoke = wait([worker.pipe for worker in busy], timeout=0.5)
    for worker in list(busy):
        assert worker.case is not None
        if worker.pipe in spoke:
            try:
                yield worker, worker.pipe.recv()
            except EOFError:
                worker.process.join()
                yield worker, _alone(Fault.TRACEBACK, f"the case's own process died ({worker.process.exitcode})")
        elif time.monotonic() > worker.deadline:
            worker.end()
            end_marked(worker.case.mark)
            yield worker, _alone(Fault.HANG, "the case did not end in its time")


def _alone(fault: Fault, words: str) -> Result:
    return Result(findings=[Finding(fault, words)])


def _started(kinds: Mapping[str, Kind], root: Path) -> Worker:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_work, args=(theirs, kinds, root), daemon=True)
    process.start()
    theirs.close()
    return Worker(process, ours)


def _work(pipe: Connection, kinds: Mapping[str, Kind], root: Path) -> None:
    os.setpgid(0, 0)  # Ctrl-C is the injector's alone: it ends its workers, and what they started
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    while True:
        try:
            case: Case = pipe.recv()
        except EOFError:
            return
        started = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix=f"{case.kind}-{case.number}-", dir=root))
        try:
            result = kinds[case.kind].run(case, folder)
        except Exception:
            result = _alone(Fault.TRACEBACK, "the injector itself failed: " + traceback.format_exc())
        finally:
            end_marked(case.mark)
            shutil.rmtree(folder, ignore_errors=True)
        result.seconds = time.monotonic() - started
        pipe.send(result)
