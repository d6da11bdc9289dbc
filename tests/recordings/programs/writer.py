"""A run process for the tests: `writer.py FILE TICKS` commits ticks and applies commands.

It prints `tick N` once tick N is committed, waits for a line on its input every 50 ticks, and closes the file
after the last one, or when a `stop` command comes.
"""

import os
import sys
from pathlib import Path

import numpy as np

from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig
from servetop.core.events import Action, Command, EngineSample, RequestRecord, RequestStatus, RunEnd
from servetop.core.histogram import LogHistogram
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import ClientTick, Tick
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction

REQUESTS_PER_TICK = 4


def requests_of(tick: int) -> list[RequestRecord]:
    """Four requests of 20 tokens that ended in that tick."""
    return [
        RequestRecord(
            id=tick * REQUESTS_PER_TICK + number,
            stage=0,
            due=tick * 0.25,
            sent=tick * 0.25,
            first_token_at=tick * 0.25 + 0.01,
            done_at=tick * 0.25 + 0.2,
            prompt_tokens=10,
            output_tokens=20,
            status=RequestStatus.OK,
            chunk_times=tick * 0.25 + np.linspace(0.01, 0.2, 20),
            chunk_tokens=np.ones(20, dtype=np.int64),
        )
        for number in range(REQUESTS_PER_TICK)
    ]


def batch_of(tick: int, commands: list[Command]) -> TickTransaction:
    """The transaction of tick number `tick`."""
    client = ClientTick(
        index=tick, ok=REQUESTS_PER_TICK, output_tokens=80, ttft=LogHistogram.of([0.01] * REQUESTS_PER_TICK)
    )
    sample = EngineSample(scrape_start=tick * 0.25, scrape_end=tick * 0.25 + 0.01, running=4.0, waiting=0.0)
    applied = [
        Command(id=each.id, at=each.at, action=each.action, applied_at=tick * 0.25, reply=f"done: {each.text}")
        for each in commands
    ]
    return TickTransaction(
        tick=Tick(client=client, engine=sample), requests=requests_of(tick), engine_samples=[sample], commands=applied
    )


def write_line(line: str) -> None:
    """Write a line to the test, unbuffered."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(path: str, ticks: int) -> None:
    """Write the file."""
    anchor = ClockAnchor.take()
    recorder = Recorder.create(Path(path), RunHeader(config=RunConfig(), anchor=anchor, pid=os.getpid()))
    stopping = False
    for tick in range(ticks):
        commands = recorder.new_commands()
        recorder.commit(batch_of(tick, commands))
        write_line(f"tick {tick}")
        stopping = stopping or any(each.action is Action.STOP for each in commands)
        if stopping or (tick % 50 == 49 and not sys.stdin.readline()):
            break
    recorder.close(RunEnd(at=ticks * 0.25, exit_code=0, reason=""))
    write_line("closed")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
