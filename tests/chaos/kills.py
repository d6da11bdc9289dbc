"""Kills, stops and interrupts the processes of a run at random times in every phase, and counts what remains."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.case import Case, Fault, Result
from tests.chaos.invariants import Harm, check_recording, check_words
from tests.chaos.ledger import What
from tests.chaos.place import PATIENCE, Place
from tests.chaos.processes import marked, until

SWEEP = """max_num_seqs = [2, 4]
request_rate = [{rate}]
num_prompts = {prompts}
{engine}
[workload]
input_len = 6
output_len = {tokens}
"""
SCENARIOS = {"attached": 4, "owned": 4, "sweep": 1, "simulator": 1}
"""And how often each is drawn."""
WITH_WORKERS = {"attached": 4, "owned": 4, "simulator": 1}
"""A sweep takes no --workers."""
TARGETS = ("run", "sender", "engine")
INSTANTS = ("clock", "boot", "load", "drain", "restart", "end")
ENGINE_OF = {"simulator": "servetop.simulator"}


@dataclass(frozen=True, slots=True)
class Blow:
    """What a case does to whom, and when."""

    scenario: str
    target: str
    number: signal.Signals
    instant: str
    delay: float
    pause: float = 0.0
    """After SIGSTOP, seconds until SIGCONT."""

    @classmethod
    def drawn(cls, chance: random.Random, number: signal.Signals, *, scenarios: Mapping[str, int]) -> Blow:
        scenario = chance.choices([*scenarios], weights=[*scenarios.values()])[0]
        instant = chance.choice([each for each in INSTANTS if scenario == "sweep" or each != "restart"])
        return cls(
            scenario=scenario,
            target=chance.choice([each for each in TARGETS if (scenario, each) != ("attached", "engine")]),
            number=number,
            instant=instant,
            delay=chance.uniform(0.0, 0.6) ** (3.0 if instant == "end" else 1.5),
            pause=chance.uniform(0.2, 2.5),
        )


@dataclass(frozen=True, slots=True)
class Load:
    """A short one, with a drain that can be hit."""

    prompts: int
    rate: int
    tokens: int

    def words(self) -> tuple[str, ...]:
        return (
            "--num-prompts", str(self.prompts), "--request-rate", str(self.rate), "--input-len", "6",
            "--output-len", str(self.tokens),
        )  # fmt: skip


def kill(case: Case, folder: Path) -> Result:
    """kill -9."""
    return _hit(case, folder, signal.SIGKILL)


def interrupt(case: Case, folder: Path) -> Result:
    """SIGINT, SIGTERM or SIGHUP."""
    return _hit(case, folder, case.chance().choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)))


def freeze(case: Case, folder: Path) -> Result:
    """SIGSTOP, and SIGCONT a while later."""
    return _hit(case, folder, signal.SIGSTOP)


def workers(case: Case, folder: Path) -> Result:
    """kill -9 of one of several senders, or of what stands above them."""
    return _hit(case, folder, signal.SIGKILL, more=("--workers", str(case.chance().randint(2, 4))))


def _hit(case: Case, folder: Path, number: signal.Signals, *, more: tuple[str, ...] = ()) -> Result:
    chance = case.chance()
    place, result = Place(case, folder), Result()
    blow = Blow.drawn(chance, number, scenarios=WITH_WORKERS if more else SCENARIOS)
    load = Load(prompts=chance.randint(10, 50), rate=chance.choice((20, 40, 80)), tokens=chance.randint(2, 12))
    with ExitStack() as stack:
        process = place.start([*_words(place, blow.scenario, load, stack), *more])
        landed = _wait_and_hit(place, process, blow, load)
        ended = place.finish(process, result)
    result.tried = int(landed)
    result.note(f"{blow.scenario}, {blow.target}, {blow.instant}" + ("" if landed else ": over before"))
    check_words(ended, result, signalled=True)
    if blow.scenario != "simulator":
        check_recording(place, ended, result, harm=_harm(blow, landed=landed))
    if ended.code is not None and ended.code >= 0 and (left := place.left_behind()):
        result.found(Fault.LEFTOVER, f"files: {left}")
    return result


def _harm(blow: Blow, *, landed: bool) -> Harm:
    if not landed or blow.number == signal.SIGSTOP:
        return Harm.NONE
    return Harm.SENDER_LOST if blow.target == "sender" else Harm.ENDED


def _words(place: Place, scenario: str, load: Load, stack: ExitStack) -> list[str]:
    record = ["--record", str(place.recording), "--headless", "--json"]
    server = place.server_words(boot=0.1, stop=0.2)
    match scenario:
        case "attached":
            url = stack.enter_context(place.server())
            return ["--url", url, *load.words(), *record]
        case "owned":
            return ["--engine", "vllm", "--engine-command", " ".join(server), *load.words(), *record]
        case "sweep":
            file = place.folder / "sweep.toml"
            engine = f'[engine]\nname = "vllm"\nmodel = "llama-2-7b"\ncommand = {server!r}'
            file.write_text(SWEEP.format(rate=load.rate, prompts=load.prompts, tokens=load.tokens, engine=engine))
            return ["sweep", str(file), *record]
        case _:
            return [*load.words(), *record]


def _wait_and_hit(place: Place, process: subprocess.Popen[bytes], blow: Blow, load: Load) -> bool:
    """False: the run was over before, or the target was not there any more."""

    def come() -> bool:
        return process.poll() is not None or _has_come(place, blow, load)

    if blow.instant == "clock":
        until(lambda: process.poll() is not None, seconds=4.0 * blow.delay)
    else:
        until(come, seconds=PATIENCE)
        until(lambda: process.poll() is not None, seconds=blow.delay)
    pid = until(lambda: next(_targets(place, process, blow), None) or (process.poll() is not None and -1), seconds=20.0)
    if pid is None or pid < 0 or process.poll() is not None:
        return False
    landed = place.send(pid, blow.number)
    if landed and blow.number == signal.SIGSTOP:
        time.sleep(blow.pause)
        place.send(pid, signal.SIGCONT)
    return landed


def _has_come(place: Place, blow: Blow, load: Load) -> bool:
    if blow.instant == "boot":
        return place.recording.exists()
    if blow.scenario == "simulator":
        return place.recording.with_name("run.servetop-wal").exists()
    ledger = place.ledger
    comes: dict[str, Callable[[], bool]] = {
        "load": lambda: ledger.count(What.RECEIVED) > 0,
        "drain": lambda: ledger.count(What.RECEIVED) >= load.prompts - 1,
        "restart": lambda: ledger.count(What.STOP_REQUESTED) > 0,
        "end": lambda: ledger.count(What.ANSWERED, What.STOP_REQUESTED) >= load.prompts,
    }
    return comes[blow.instant]()


def _targets(place: Place, process: subprocess.Popen[bytes], blow: Blow) -> Iterator[int]:
    if blow.target == "run":
        yield process.pid
        return
    words = {
        "sender": "servetop.run.process.sender_program",
        "engine": ENGINE_OF.get(blow.scenario, "tests.chaos.server"),
    }
    for pid, command in reversed(marked(place.mark).items()):  # of several senders, not the first one
        if words[blow.target] in command and pid != process.pid and "watchdog.py" not in command:
            yield pid
