"""The tables of the comparison with other clients, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.corpus.peers.comparison import PeerComparison


def report_lines(compared: Sequence[PeerComparison], missing: Mapping[str, str]) -> list[str]:
    """Return the figures of each peer, then the kinds of its differences."""
    lines = [
        "| client | version | corpus | files | same reading | explained | not asked |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in compared:
        counts = (each.tried, each.same, each.tried - each.same, each.skipped)
        lines.append(f"| {each.title} | {each.version} | {each.corpus} | {' | '.join(map(str, counts))} |")
    lines += [f"| {title} | not compared: {reason} | | | | | |" for title, reason in missing.items()]
    for each in compared:
        if each.kinds:
            lines += ["", f"### {each.title}, {each.corpus}", "", *_kinds(each)]
    return lines


def _kinds(each: PeerComparison) -> list[str]:
    lines = ["| it reads | right is | why | files |", "|---|---|---|---|"]
    for kind in sorted(each.kinds, key=lambda kind: -len(kind.cases)):
        files = f"`{kind.cases[0]}`" + (f" and {len(kind.cases) - 1} more" if len(kind.cases) > 1 else "")
        lines.append(f"| {kind.reads} | {kind.right} | {kind.why} | {files} |")
    return lines
