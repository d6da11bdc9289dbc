"""Runs cases in worker processes, several at once; a case that hangs is ended with its worker, and is a finding."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
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
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run_all(cases: Iterable[Case], kinds: Mapping[str, Kind], *, jobs: int) -> Iterator[tuple[Case, Result]]:
    """Each case with its result, in the order in which they end."""
    waiting = iter(cases)
    idle = [_started(kinds) for _ in range(jobs)]
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
                idle.append(worker if worker.process.is_alive() else _started(kinds))
                yield worker.case, result
    finally:
        for worker in [*idle, *busy]:
            worker.end()
            if worker in busy and worker.case is not None:
                end_marked(worker.case.mark)


def _ended(busy: list[Worker]) -> Iterator[tuple[Worker, Result]]:
    """Those that answered, died or ran out of time within half a second."""
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


def _started(kinds: Mapping[str, Kind]) -> Worker:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_work, args=(theirs, kinds), daemon=True)
    process.start()
    theirs.close()
    return Worker(process, ours)


def _work(pipe: Connection, kinds: Mapping[str, Kind]) -> None:
    while True:
        try:
            case: Case = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        folder = Path(tempfile.mkdtemp(prefix=f"servetop-chaos-{case.kind}-{case.number}-"))
        try:
            result = kinds[case.kind].run(case, folder)
        except Exception:
            result = _alone(Fault.TRACEBACK, "the injector itself failed: " + traceback.format_exc())
        finally:
            end_marked(case.mark)
            shutil.rmtree(folder, ignore_errors=True)
        pipe.send(result)
