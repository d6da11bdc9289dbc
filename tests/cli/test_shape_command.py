"""`servetop shape` as a user runs it: the trace, its report, and none of the texts of the logs."""

from __future__ import annotations

import gzip
import json
import random
import stat
import string
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from servetop.cli.main import main
from tests.house.source_tree import TOP
from tests.reports.schema.test_summary_schema import schema_errors

SCHEMA = json.loads((TOP / "docs" / "schema" / "shape.json").read_text(encoding="utf-8"))
VLLM = "INFO 11-28 14:{:02}:{:02} [logger.py:39] "


class Canaries:
    """Random strings that must not leave a log."""

    def __init__(self) -> None:
        self.planted: list[str] = []
        self._random = random.Random(40)

    def __call__(self) -> str:
        """Plant another one."""
        self.planted.append("".join(self._random.choices(string.ascii_letters + string.digits, k=24)))
        return self.planted[-1]

    def found_in(self, text: str) -> list[str]:
        """The parts of 8 or more characters that a text has of them."""
        parts = (each[at : at + 8] for each in self.planted for at in range(len(each) - 7))
        return [part for part in parts if part in text]


def gateway_lines(new: Canaries, count: int) -> Iterator[str]:
    for at in range(count):
        messages = [{"role": "system", "content": "Be brief. " * 40}, {"role": new(), "content": f"{new()} {new()}"}]
        row = {
            "ts": 1_795_875_000 + at * 0.7, "id": new(),
            "request": {"model": new(), "messages": messages, new(): new()},
            "usage": {"prompt_tokens": 120, "completion_tokens": 20}, "headers": {"x-session-id": new()}, "url": new(),
        }  # fmt: skip
        yield json.dumps(row) + "\n"
        if at % 10 == 0:
            yield f'{{"ts": 1, "{new()}\n{new()}\n{{"ts": "{new()}", "prompt_tokens": "{new()}"}}\n'


def vllm_lines(new: Canaries, count: int) -> Iterator[str]:
    for at in range(count):
        line = VLLM.format(at // 60, at % 60)
        yield f"{line}Received request {new()}: prompt: '{new()} {new()}', params: SamplingParams(stop=['{new()}']).\n"
        yield f"{line}Received request {new()}: prompt: '{new()}\n{new()}\n"


def span_lines(new: Canaries, count: int) -> Iterator[str]:
    for at in range(count):
        values = {
            "gen_ai.usage.input_tokens": {"intValue": "50"}, "gen_ai.usage.output_tokens": {"intValue": 9},
            "gen_ai.conversation.id": {"stringValue": new()}, "user.email": {"stringValue": new()},
            "gen_ai.prompt.0.content": {"stringValue": new()},
        }  # fmt: skip
        span = {
            "spanId": new(), "parentSpanId": new(), "startTimeUnixNano": f"{1_795_875_000 + at}000000000",
            "attributes": [{"key": key, "value": value} for key, value in values.items()],
        }  # fmt: skip
        yield (
            json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span, {**span, "startTimeUnixNano": new()}]}]}]})
            + "\n"
        )


def test_no_planted_string_leaves_the_logs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    new, target = Canaries(), tmp_path / "shape.jsonl"
    seen = ""
    for number, lines in enumerate((gateway_lines(new, 80), vllm_lines(new, 60), span_lines(new, 50))):
        folder = tmp_path / new()
        folder.mkdir()
        log = folder / f"{new()}.log"
        log.write_text("".join(lines))
        for words in ((), ("--json",), ("--salt-file", str(tmp_path / "salt")), ("--format", "mooncake")):
            code = main(["shape", str(log), "-o", str(target), "--block-tokens", "16", *words])
            assert code == (2 if "--format" in words else 0), capfd.readouterr().err
            seen += "".join(capfd.readouterr())
            seen += target.read_text()
        assert main(["shape", str(log / new())]) == 2
        seen += "".join(capfd.readouterr())
        assert len(target.read_text().splitlines()) == (80, 60, 50)[number]
    assert len(new.planted) > 1000
    assert new.found_in(seen) == []
    assert new.found_in(new.planted[7]) != []


def written(folder: Path, *, count: int = 30) -> Path:
    log = folder / "gateway.jsonl.gz"
    log.write_bytes(gzip.compress("".join(gateway_lines(Canaries(), count)).encode()))
    return log


def test_the_report_describes_the_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, target = written(tmp_path), tmp_path / "a trace.jsonl"
    assert main(["shape", str(log), "-o", str(target)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "source 1         json: 30 requests, 9 unreadable lines left out (first: line 2)"
    assert lines[1] == "requests         30 in 20.3 s"
    assert lines[2].startswith("rate             1.43 req/s in mean, CV of the gaps 0.00")
    assert lines[3] == "prompt tokens    mean 120, p50 120, p90 120, p99 120, max 120"
    assert lines[5].startswith("shared prefixes  51.5 % of the prompt tokens are as in earlier prompts")
    assert lines[-1] == f"to send it       servetop --dataset-name trace --dataset-path '{target}'"
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert (rows[1]["timestamp"], rows[1]["hash_ids"][0], rows[1]["session_id"]) == (700, 0, 1)


def test_the_json_fits_its_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shape", str(written(tmp_path)), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert schema_errors(report, SCHEMA, SCHEMA["$defs"]) == []
    assert (report["requests"], report["sources"][0]["unreadable"], report["replay"]) == (30, 9, None)


def test_what_a_log_lacks_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "vllm.log"
    log.write_text("".join(vllm_lines(Canaries(), 5)))
    assert main(["shape", str(log), "--output-len", "40"]) == 0
    out = capsys.readouterr().out
    assert "missing          output lengths of 5 requests: 40 tokens are assumed" in out
    assert "missing          prompt lengths of 5 requests: estimated from the texts" in out
    assert "missing          sessions of 5 requests" in out
    assert "missing          exact times of 5 requests" in out
    assert out.endswith("to write it      add -o shape.jsonl\n")


def test_a_kept_salt_gives_equal_groups(tmp_path: Path) -> None:
    log, salt = written(tmp_path), tmp_path / "salt"
    targets = [tmp_path / f"{number}.jsonl" for number in range(3)]
    for target, words in zip(targets, (["--salt-file", str(salt)], ["--salt-file", str(salt)], []), strict=True):
        assert main(["shape", str(log), "-o", str(target), *words]) == 0
    assert stat.S_IMODE(salt.stat().st_mode) == 0o600
    first, second, other = (target.read_text() for target in targets)
    assert first == second != other
    assert json.loads(first.splitlines()[0])["hash_ids"][0] > 1 << 20


def test_standard_input_is_a_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with written(tmp_path).open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert main(["shape", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["requests"] == 30


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "Missing argument 'SOURCE'"),
        (["-", "-"], "- is given more than once"),
        (["none.jsonl"], "cannot read source 1 (no such file or directory)"),
        (["."], "cannot read source 1 (is a directory)"),
        (["log", "-o", "."], "--output . is a folder"),
        (["log", "-o", "x.servetop"], "a recording by its suffix"),
        (["log", "--fields", "time=a"], "--fields: unknown 'time'"),
        (["log", "--salt-file", "short"], "--salt-file: its 3 bytes are too few"),
        (["log", "--salt-file", "."], "--salt-file: cannot use it (is a directory)"),
        (["log", "--block-tokens", "0"], "--block-tokens"),
    ],
)
def test_wrong_use_is_one_line(
    words: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log").write_text('{"ts": 1, "prompt_tokens": 4}\n')
    Path("short").write_text("abc")
    assert main(["shape", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, reason in err, err.count("\n")) == ("", True, 1), err


def test_a_log_is_not_overwritten_by_its_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "gateway.jsonl"
    log.write_text("".join(gateway_lines(Canaries(), 3)), encoding="utf-8")
    before = log.read_bytes()
    assert main(["shape", str(log), "-o", str(log)]) == 2
    assert "is a file that is read" in capsys.readouterr().err
    assert log.read_bytes() == before
