"""Honest engines behind a counting proxy, under kill -9, SIGSTOP and cut connections: the recording has its count."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.chaos.case import Case, Fault, Result
from tests.chaos.invariants import Harm, check_recording, check_words
from tests.chaos.ledger import What
from tests.chaos.place import PATIENCE, Place
from tests.chaos.processes import marked, until
from tests.reserved_port import reserved_port

LLAMA_CPP = Path.home() / ".cache" / "servetop-integration" / "llama.cpp"
"""Where `make integration` puts llama-server and a tiny model."""
BLOWS = ("kill run", "kill sender", "kill engine", "stop run", "stop sender", "stop engine", "cut", "cut", "none")


def behind_a_proxy(case: Case, folder: Path) -> Result:
    """The simulator as a server process, or llama.cpp; one blow, or connections that are cut."""
    chance = case.chance()
    place, result = Place(case, folder), Result()
    engine = chance.choice(("simulator", "simulator", "llama.cpp"))
    if engine == "llama.cpp" and not (LLAMA_CPP / "llama-server").exists():
        return Result(tried=0, notes={"left out: make integration has not installed llama.cpp": 1})
    blow = chance.choice(BLOWS)
    result.note(f"{engine}, {blow}")
    prompts = chance.randint(10, 40 if engine == "simulator" else 15)
    words = ["--num-prompts", str(prompts), "--request-rate", str(chance.choice((10, 20, 40))), "--input-len", "8"]
    words += [
        "--output-len",
        str(chance.randint(4, 24 if engine == "simulator" else 8)),
        "--headless",
        "--json",
        "--record",
        str(place.recording),
    ]
    with started(place, engine) as (process, port), proxied(place, port, cut=0.2 if blow == "cut" else 0.0) as url:
        run = place.start([*words, "--url", url])
        until(lambda: place.ledger.count(What.RECEIVED) > 0 or run.poll() is not None, seconds=PATIENCE)
        time.sleep(chance.uniform(0.0, 1.0))
        landed = _strike(place, blow, run.pid, process.pid, pause=chance.uniform(0.2, 2.5))
        result.tried = int(landed)
        ended = place.finish(run, result)
    check_words(ended, result, signalled=True)
    check_recording(place, ended, result, harm=_harm(blow) if landed else Harm.NONE)
    broken = place.ledger.count(What.BROKEN) if blow == "kill engine" else 0
    if ended.code == 0 and broken > max(1.0, 0.01 * place.ledger.count(What.RECEIVED)):
        result.found(Fault.INVENTED, f"exit code 0 although {broken} answers broke off with their engine")
    if blow in ("none", "stop run", "stop sender", "stop engine") and ended.code not in (0, 99):
        result.found(Fault.LOST, f"exit code {ended.code} although every answer was fine: {ended.last_line}")
    return result


def _harm(blow: str) -> Harm:
    if blow == "kill sender":
        return Harm.SENDER_LOST
    return Harm.ENDED if blow.startswith("kill") else Harm.NONE


def _strike(place: Place, blow: str, run: int, engine: int, *, pause: float) -> bool:
    """False when its target was over before."""
    deed, _, target = blow.partition(" ")
    if not target:
        return True
    senders = [pid for pid, command in marked(place.mark).items() if "servetop.run.process.sender_program" in command]
    pid = {"run": run, "engine": engine}.get(target, senders[0] if senders else None)
    if pid is None or run not in marked(place.mark):
        return False
    if deed == "kill":
        return place.send(pid, signal.SIGKILL)
    stopped = place.send(pid, signal.SIGSTOP)
    time.sleep(pause)
    place.send(pid, signal.SIGCONT)
    return stopped


@contextlib.contextmanager
def started(place: Place, engine: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """An engine that serves, and its port. It bears no mark: it is not servetop's to end."""
    with reserved_port() as port, _background(place, _command(engine, port), "engine") as process:
        assert until(lambda: _serves(port), seconds=PATIENCE), f"{engine} did not start: {place.printed('engine.err')}"
        yield process, port


def _command(engine: str, port: int) -> list[str]:
    where = ["--host", "127.0.0.1", "--port", str(port)]
    if engine == "simulator":
        return [sys.executable, "-m", "servetop", "serve", *where]
    model = ["-m", str(LLAMA_CPP / "tiny.gguf"), "-c", "4096", "-np", "4", "-t", "1", "--metrics", "--no-warmup"]
    return [str(LLAMA_CPP / "llama-server"), *model, *where]


def _serves(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextlib.contextmanager
def proxied(place: Place, port: int, *, cut: float, handshakes: bool = False) -> Iterator[str]:
    """The URL of a proxy before a port; it counts in the place's ledger, unless it cuts handshakes."""
    ledger = place.folder / "handshakes" if handshakes else place.ledger_file
    words = ["--ledger", str(ledger), "--to", str(port), "--cut", str(cut), "--seed", str(place.case.number)]
    words = [sys.executable, "-m", "tests.chaos.proxy", *words, *(["--handshakes"] if handshakes else [])]
    with _background(place, words, "proxy"):
        found = until(lambda: type(place.ledger).read(ledger).of(What.STARTED), seconds=PATIENCE)
        assert found, f"the proxy did not start: {place.printed('proxy.err')}"
        yield f"http://127.0.0.1:{found[-1].tokens}"


@contextlib.contextmanager
def _background(place: Place, words: Sequence[str], name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is killed at the end."""
    with (place.folder / f"{name}.err").open("wb") as err:
        process = subprocess.Popen(
            words,
            env={**os.environ, **place.environment({"SERVETOP_CHAOS_ID": None})},
            stdout=err,
            stderr=err,
            cwd=place.folder,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
