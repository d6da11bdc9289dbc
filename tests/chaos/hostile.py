"""Whole runs against servers that answer badly: the counts agree, nothing hangs, nothing foreign is printed."""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path

from tests.chaos import modes, pages
from tests.chaos.case import Case, Fault, Result
from tests.chaos.engines import proxied
from tests.chaos.invariants import Harm, check_recording, check_words
from tests.chaos.ledger import What
from tests.chaos.place import ANOTHER_NAME, CERTIFICATE, Ended, Place

REQUEST_TIMEOUT, PATIENT = "2", "60"
"""Seconds given to a request by --timeout: servers that keep silent on purpose are given up soon, busy ones are not."""
NAMELESS = ("models-broken", "models-deep", "models-empty")
"""Pages by which no model is known: the run cannot begin."""
NO_TLS = ("unknown-authority", "wrong-name", "plain-on-tls", "tls-on-plain", "handshake-cut")
"""Faults with which no request can be sent."""
TLS_FAULTS = (*NO_TLS, "some-handshakes-cut", "fine")
CUT_SHARES = {"handshake-cut": 1.0, "some-handshakes-cut": 0.3}


OPTIONS = (
    ("--engine", "openai"),
    ("--endpoint", "chat"),
    ("--workers", "2"),
    ("--store-texts",),
    ("--transport", "httpx"),
)


def answer_modes(case: Case, folder: Path) -> Result:
    """Each way of answering in turn, then mixtures of all."""
    names = [*sorted(modes.ANSWERS), "mixed", "few"]
    return _run(case, folder, mode=names[(case.number + case.seed) % len(names)], page="honest")


def page_modes(case: Case, folder: Path) -> Result:
    """Each kind of faulty page in turn, with honest answers."""
    names = sorted(pages.MODES)
    return _run(case, folder, mode="honest", page=names[(case.number + case.seed) % len(names)])


def _run(case: Case, folder: Path, *, mode: str, page: str) -> Result:
    chance = case.chance()
    place, result = Place(case, folder), Result()
    result.note(mode if page == "honest" else page)
    with place.server(mode=mode, page=page) as url:
        silent = mode in (*modes.SILENT, "gzip-bomb")
        words = [*load(chance, place), "--timeout", REQUEST_TIMEOUT if silent else PATIENT]
        process = place.start([*words, "--url", url])
        ended = place.finish(process, result)
    check_words(ended, result)
    if not folder.joinpath("server.err").stat().st_size:
        check_recording(place, ended, result, harm=Harm.NONE)
    else:
        result.found(Fault.TRACEBACK, "of the server under test: " + place.printed("server.err")[-800:])
    _check_verdict(mode, place, ended, result, nameless=page in NAMELESS)
    return result


def load(chance: random.Random, place: Place) -> list[str]:
    """A short one of any shape."""
    words = ["--num-prompts", str(chance.randint(4, 24)), "--input-len", "6", "--output-len", str(chance.randint(3, 9))]
    words += ["--headless", "--record", str(place.recording)]
    if chance.random() < 0.5:
        words += ["--max-concurrency", str(chance.randint(2, 8))]
    else:
        words += ["--request-rate", str(chance.choice((20, 50, 100)))]
    for option in OPTIONS:
        words += option if chance.random() < 0.2 else []
    return words + (["--json"] if chance.random() < 0.7 else [])


def _check_verdict(mode: str, place: Place, ended: Ended, result: Result, *, nameless: bool) -> None:
    if nameless:
        if ended.code != 3:
            result.found(Fault.INVENTED, f"exit code {ended.code} where no model is known: {ended.last_line}")
        return
    if mode in modes.BROKEN and ended.code == 0 and place.ledger.count(What.BROKEN, What.NO_ANSWER):
        result.found(Fault.INVENTED, f"exit code 0 although every answer was {mode}")
    if mode in modes.FINE and ended.code not in (0, 99):
        result.found(Fault.LOST, f"exit code {ended.code} although every answer was fine ({mode}): {ended.last_line}")


def tls_faults(case: Case, folder: Path) -> Result:
    """Certificates that cannot be believed, plain words where TLS is spoken, and handshakes that are cut off."""
    place, result = Place(case, folder), Result()
    fault = TLS_FAULTS[(case.number + case.seed) % len(TLS_FAULTS)]
    result.note(fault)
    certificate = ANOTHER_NAME if fault == "wrong-name" else CERTIFICATE
    words = [*load(case.chance(), place), "--timeout", PATIENT]
    if fault not in ("unknown-authority", "plain-on-tls"):
        words += ["--ca-cert", f"{certificate}.crt"]
    with ExitStack() as stack:
        url = stack.enter_context(place.server(**({} if fault == "tls-on-plain" else {"tls": str(certificate)})))
        if fault in CUT_SHARES:
            port = int(url.rpartition(":")[2])
            url = stack.enter_context(proxied(place, port, cut=CUT_SHARES[fault], handshakes=True))
        scheme = "http" if fault == "plain-on-tls" else "https"
        process = place.start([*words, "--url", f"{scheme}://localhost:{url.rpartition(':')[2]}"])
        ended = place.finish(process, result)
    check_words(ended, result)
    check_recording(place, ended, result, harm=Harm.NONE)
    if fault in NO_TLS and (ended.code != 3 or place.ledger.count(What.RECEIVED)):
        result.found(Fault.INVENTED, f"exit code {ended.code} where TLS must fail ({fault}): {ended.last_line}")
    if fault == "fine" and ended.code not in (0, 99):
        result.found(Fault.LOST, f"exit code {ended.code} although TLS is fine: {ended.last_line}")
    return result
