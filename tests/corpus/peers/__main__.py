"""Compares how clients read the corpus with its right readings: `python -m tests.corpus.peers [--report PAGE]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from tests.corpus.corpus import load_cases
from tests.corpus.data_corpus import load_data
from tests.corpus.metrics_corpus import load_metrics_cases
from tests.corpus.peers.comparison import (
    METRICS_PEER,
    PeerComparison,
    compare_data,
    compare_metrics,
    compare_responses,
)
from tests.corpus.peers.peers import PEERS, NotCompared
from tests.corpus.peers.tables import report_lines
from tests.judgement.report_page import say, write_between_marks

MARK = "<!-- make judge-wild -->"
"""Encloses the figures in the page."""


def main(argv: Sequence[str]) -> int:
    """Compare all peers, print the tables; 1 if a difference is not explained or an explanation is not needed."""
    options = _parsed(argv)
    compared: list[PeerComparison] = []
    missing: dict[str, str] = {}
    for name, title, compare in _comparisons():
        if options.only and name not in options.only:
            continue
        say(f"servetop: {title} reads the corpus")
        try:
            compared.append(compare())
        except NotCompared as error:
            missing[title] = str(error)
    lines = report_lines(compared, missing)
    say("\n".join(lines))
    faults = [line for each in compared for line in each.faults()]
    for line in faults:
        say(f"servetop: {line}")
    if options.report and not faults:
        write_between_marks(options.report, lines, mark=MARK)
    return 1 if faults else 0


def _comparisons() -> Iterator[tuple[str, str, Callable[[], PeerComparison]]]:
    """Yield the name and title of each peer, and what compares it."""
    for peer in PEERS:
        yield peer.name, peer.title, partial(compare_responses, peer, load_cases())
        if "data" in peer.modules:
            yield peer.name, peer.title, partial(compare_data, peer, load_data())
    yield METRICS_PEER, "prometheus_client", partial(compare_metrics, load_metrics_cases())


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.peers", description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="only this peer; repeat")
    parser.add_argument("--report", type=Path, help="write the tables into this page, between its marks")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
