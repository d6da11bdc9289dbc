"""Compares how clients read the corpus with its right readings: `python -m tests.corpus.peers [--report PAGE]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.corpus.corpus import load_cases
from tests.corpus.peers.comparison import PeerComparison, compare_responses
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
    for peer in PEERS:
        if options.only and peer.name not in options.only:
            continue
        say(f"servetop: {peer.title} reads the corpus")
        try:
            compared.append(compare_responses(peer, load_cases()))
        except NotCompared as error:
            missing[peer.title] = str(error)
    lines = report_lines(compared, missing)
    say("\n".join(lines))
    faults = [line for each in compared for line in each.faults()]
    for line in faults:
        say(f"servetop: {line}")
    if options.report and not faults:
        write_between_marks(options.report, lines, mark=MARK)
    return 1 if faults else 0


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.peers", description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="only this peer; repeat")
    parser.add_argument("--report", type=Path, help="write the tables into this page, between its marks")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
