"""Audits load generators with the same two loads: `python -m tests.judgement.audit_clients`.

A client that cannot be installed or run is printed with the reason and left out of the table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.judgement.client_commands import CLIENTS, INPUT, OUTPUT, LeftOutError, Load, Words, loads
from tests.judgement.report_page import say, write_between_marks

MARK = "<!-- make audit-clients -->"
SECTION = (
    "## Clients compared\n\nErrors of the figures of each client, of TTFT also request by request (client − server), "
    f"by `make audit-clients`: {INPUT} prompt tokens and {OUTPUT} output tokens a request, simulated llama-2-7b on an "
    "A100. The result of SGLang has no times of sending, so its rates are unknown. guidellm has no times between the "
    "first and the last token, so percentiles of its ITL are not those of the tokens. LLMPerf is published as source "
    "only, and is not in the table."
)
SERVER = ("--model", "llama-2-7b", "--max-num-seqs", "64", "--served-model-name", "tiny-llama")
COLUMNS: Mapping[str, str] = {
    "request rate": "arrival_rate",
    "in flight": "mean_concurrency",
    "output tokens": "total_output_tokens",
    "TTFT mean": "mean_ttft_ms",
    "TTFT p99": "p99_ttft_ms",
    "TPOT mean": "mean_tpot_ms",
    "ITL p99": "p99_itl_ms",
    "E2EL p99": "p99_e2el_ms",
}


def audit(client: Words, load: Load) -> dict[str, Any]:
    """Return the report of `servetop audit --json`; LeftOutError if the client fails."""
    with tempfile.TemporaryDirectory() as folder:
        words, result = client(load, Path(folder))
        argv = (sys.executable, "-m", "servetop", "audit", *SERVER, "--json", "--result", str(result), "--", *words)
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    report: dict[str, Any] = json.loads(done.stdout) if done.stdout else {"error": done.stderr[-500:]}
    if "result" not in report:
        raise LeftOutError(str(report["error"]))
    return report


def row(name: str, load: Load, report: Mapping[str, Any]) -> str:
    """Return a row of the table: errors in percent, and those of the TTFT of single requests in milliseconds."""
    errors = {each["name"]: each["error_percent"] for each in report["figures"]}
    ttft: Mapping[str, Any] = next((each for each in report["request_errors"] if each["name"] == "ttft"), {})
    tool = " ".join(filter(None, (name, report["result"]["version"])))
    cells = [tool, load.title, *(_percent(errors[key]) for key in COLUMNS.values())]
    cells += [_number(ttft.get("p50")), _number(ttft.get("p99")), _number(report["server"]["lag_p99_ms"])]
    return f"| {' | '.join(cells)} |"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{round(value, 2) + 0.0:+.2f} %"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def table(seconds: float, names: Sequence[str]) -> list[str]:
    """Audit the named clients with both loads, and return the table."""
    heads = [
        "client",
        "load",
        *COLUMNS,
        "TTFT p50, client − server, ms",
        "TTFT p99, client − server, ms",
        "own delay p99, ms",
    ]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for name in names:
        for load in loads(seconds):
            try:
                lines.append(row(name, load, audit(CLIENTS[name], load)))
                say(lines[-1])
            except LeftOutError as error:
                say(f"LEFT OUT: {name}, {load.title}: {error}")
    return lines


def main() -> None:
    """Print the table, and write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", action="append", choices=list(CLIENTS))
    parser.add_argument("--seconds", type=float, default=120.0, help="length of each load")
    parser.add_argument("--report", type=Path, help="a page into which the table is written")
    options = parser.parse_args()
    lines = table(options.seconds, options.client or list(CLIENTS))
    if options.report is not None:
        _make_place(options.report)
        write_between_marks(options.report, lines, mark=MARK)


def _make_place(page: Path) -> None:
    """Add the section of the table to a page that has none yet."""
    text = page.read_text(encoding="utf-8")
    if MARK not in text:
        page.write_text(f"{text}\n{SECTION}\n\n{MARK}\n{MARK}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
