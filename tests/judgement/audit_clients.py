"""Audits load generators with the same two loads: `python -m tests.judgement.audit_clients`.

Each runs in an environment of its own (tests/corpus/peers/install*.sh installs it); one that cannot be installed or run
is printed with the reason and left out of the table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.house.source_tree import TOP
from tests.judgement.report_page import say, write_between_marks
from tests.judgement.shared_prompts import write_prompts

INPUT, OUTPUT = 128, 64
MARK = "<!-- make audit-clients -->"
SECTION = (
    "## Clients compared\n\nErrors of the figures of each client, of TTFT also request by request (client − server), "
    f"by `make audit-clients`: {INPUT} prompt tokens and {OUTPUT} output tokens a request, simulated llama-2-7b on an "
    "A100."
)
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "servetop-integration"
PEERS = TOP / "tests" / "corpus" / "peers"
SERVER = ("--model", "llama-2-7b", "--max-num-seqs", "64", "--served-model-name", "tiny-llama")
_PROMPT_KEYS = ("prompt", "output_tokens")
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


@dataclass(frozen=True, kw_only=True)
class Load:
    """A load: requests at a rate, or a number of them in flight."""

    title: str
    rate: float | None
    concurrency: int | None
    count: int
    prompts: Sequence[str] = ()
    """What each client sends; without it, each makes prompts of its own, whose tokens the server counts otherwise."""


def loads(seconds: float) -> tuple[Load, ...]:
    """Two loads of about this length."""
    open_loop = Load(title="8 req/s", rate=8.0, concurrency=None, count=round(8 * seconds))
    return open_loop, Load(title="16 in flight", rate=None, concurrency=16, count=round(14 * seconds))


Words = Callable[[Load, Path], tuple[Sequence[str], Path]]
"""The command of a load in a folder, and the file with its result."""


def servetop(load: Load, folder: Path) -> tuple[Sequence[str], Path]:
    result = folder / "run.servetop"
    kind = ("--request-rate", f"{load.rate:g}") if load.rate else ("--max-concurrency", str(load.concurrency))
    lengths: Sequence[str] = ("--input-len", str(INPUT), "--output-len", str(OUTPUT))
    if load.prompts:
        file = write_prompts(folder / "prompts.jsonl", load.prompts, output_tokens=OUTPUT, keys=_PROMPT_KEYS)
        lengths = ("--dataset-name", "custom", "--dataset-path", str(file))
    start = (sys.executable, "-m", "servetop", "--url", "{url}", "--headless", "--record", str(result))
    return (*start, *kind, *lengths, "--num-prompts", str(load.count)), result


def vllm_bench(load: Load, folder: Path) -> tuple[Sequence[str], Path]:
    home = _installed("install_vllm_bench.sh")
    rate = f"{load.rate:g}" if load.rate else "inf"
    limit = ("--max-concurrency", str(load.concurrency)) if load.concurrency else ()
    lengths: Sequence[str] = (
        "--dataset-name", "random", "--random-input-len", str(INPUT), "--random-output-len", str(OUTPUT)
    )  # fmt: skip
    if load.prompts:
        file = write_prompts(folder / "prompts.jsonl", load.prompts, output_tokens=OUTPUT, keys=_PROMPT_KEYS)
        lengths = (
            "--dataset-name", "custom", "--dataset-path", str(file), "--custom-output-len", "-1",
            "--skip-chat-template", "--disable-shuffle",
        )  # fmt: skip
    words = (
        str(home / "bin" / "python"), "-m", "vllm.entrypoints.cli.main", "bench", "serve", "--backend", "openai",
        "--base-url", "{url}", "--endpoint", "/v1/completions", "--model", "{model}", "--tokenizer", _tokenizer(),
        "--num-prompts", str(load.count), "--request-rate", rate, *limit, *lengths, "--ignore-eos",
        "--save-result", "--save-detailed", "--result-dir", str(folder), "--result-filename", "result.json",
    )  # fmt: skip
    return words, folder / "result.json"


def aiperf(load: Load, folder: Path) -> tuple[Sequence[str], Path]:
    home = _installed("install.sh", "aiperf")
    kind = ("--request-rate", f"{load.rate:g}") if load.rate else ("--concurrency", str(load.concurrency))
    lengths: Sequence[str] = ("--isl", str(INPUT), "--osl", str(OUTPUT))
    if load.prompts:
        file = write_prompts(
            folder / "prompts.jsonl", load.prompts, output_tokens=OUTPUT, keys=("text", "output_length")
        )
        lengths = ("--input-file", str(file), "--custom-dataset-type", "single_turn")
    words = (
        str(home / "bin" / "aiperf"), "profile", "--url", "{url}", "--model", "{model}", "--tokenizer", _tokenizer(),
        "--endpoint-type", "completions", "--streaming", "--ui", "none", "--use-server-token-count",
        "--extra-inputs", "ignore_eos:true", "--extra-inputs", f"min_tokens:{OUTPUT}",
        "--request-count", str(load.count), *kind, *lengths, "--output-artifact-dir", str(folder),
    )  # fmt: skip
    return words, folder / "profile_export.jsonl"


CLIENTS: Mapping[str, Words] = {"servetop": servetop, "vLLM bench": vllm_bench, "AIPerf": aiperf}


class LeftOutError(Exception):
    """A client cannot be installed, or its audit failed."""


def _installed(script: str, *words: str) -> Path:
    """Install a client, if it is not, and return the folder of its environment."""
    done = subprocess.run(["bash", PEERS / script, *words], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise LeftOutError("it cannot be installed here")
    return Path(done.stdout.splitlines()[-1])


def _tokenizer() -> str:
    """Return the folder of the tokenizer that install_vllm.sh makes."""
    folder = CACHE / "vllm" / "tiny-llama"
    if not folder.exists():
        raise LeftOutError("there is no tokenizer: run tests/integration/install_vllm.sh")
    return str(folder)


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
    return "–" if value is None else f"{value:+.2f} %"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def table(seconds: float, names: Sequence[str]) -> list[str]:
    """Audit the named clients with both loads, and return the table."""
    heads = ["client", "load", *COLUMNS, "TTFT p50 ms", "TTFT p99 ms", "own delay p99 ms"]
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
