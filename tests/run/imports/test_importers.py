"""`servetop import` reads a plug-in's format, checks what it returns, and a broken plug-in hides no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from servetop.core.errors import PlugInError, UsageError
from servetop.run.imports.result_file import read_results
from tests.plug_in_package import install

HEAD = """
from servetop.api.plug_ins import *
def request(**known):
    first = known.pop("first", 1.5)
    usual = dict(id=7, stage=3, due=0.0, sent=1.0, first_token_at=first, done_at=2.0, prompt_tokens=5, output_tokens=2,
                 status=RequestStatus.OK, chunk_times=chunk_times([first]), chunk_tokens=chunk_tokens([2]))
    return RequestRecord(**{**usual, **known})
def run(*requests, **known):
    return ImportedResult(**{**dict(tool="ACME", requests=requests, load=ImportedLoad(), backend="acme"), **known})
def importer(*runs):
    return Importer(title="acme", recognises=lambda head: head.startswith(b"ACME"), read=lambda path: runs)
def refuse(path):
    raise UsageError("it was cut off: give a whole file")
"""


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Installs importers by name, and returns a file that they recognise."""

    def made(**importers: str) -> Path:
        points = {name: f"acme_import:{name}" for name in importers}
        text = HEAD + "".join(f"{name} = {expression}\n" for name, expression in importers.items())
        install(tmp_path / "site", monkeypatch, {"servetop.importers": points}, {"acme_import": text})
        (tmp_path / "result.txt").write_text("ACME 1.0\n", encoding="utf-8")
        return tmp_path / "result.txt"

    return made


def test_a_file_that_servetop_does_not_know_is_recognised_by_a_plug_in(acme: Callable[..., Path]) -> None:
    path = acme(acme="importer(run(request(), request(due=0.5)))")
    (found,) = read_results(path)
    assert [(each.id, each.stage, each.due) for each in found.requests] == [(0, 0, 0.0), (1, 0, 0.5)]


def test_a_broken_plug_in_hides_no_other_and_is_named_where_none_recognises_the_file(
    acme: Callable[..., Path], tmp_path: Path
) -> None:
    path = acme(aaa="7", acme="importer(run(request()))")
    assert len(read_results(path)) == 1
    other = tmp_path / "other.txt"
    other.write_text("nothing that is known", encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        read_results(other)
    assert str(raised.value).startswith(f"{other}: it is not JSON, or cut off")
    assert str(raised.value).endswith("importer 'aaa' of servetop-acme 1.0 (acme_import:aaa) is int: it must be a "
                                      "Importer of servetop.api.plug_ins")  # fmt: skip


def test_a_file_of_servetops_own_formats_is_not_shown_to_plug_ins(acme: Callable[..., Path], tmp_path: Path) -> None:
    acme(acme='Importer(title="all", recognises=lambda head: True, read=lambda path: 1 / 0)')
    ours = Path(__file__).parents[2] / "corpus" / "results" / "vllm-rate.json"
    assert read_results(ours)[0].tool == "vLLM bench"
    with pytest.raises(PlugInError, match="read failed: ZeroDivisionError"):
        read_results(ours, "acme")


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("importer(7)", "read returned int: it must return runs of type ImportedResult"),
        ("importer(run(7))", "request 1: it is int, and must be a RequestRecord"),
        ("importer(run(request(), request(sent=2.5)))", "request 2: its times are not in order"),
        ("importer(run(request(first=float('nan'))))", "request 1: a time is not from 0 to 172,800 s"),
        ("importer(run(request(due=-1.0)))", "request 1: a time is not from 0 to"),
        ("importer(run(request(done_at=1.7e9)))", "request 1: a time is not from 0 to"),
        ("importer(run(request(chunk_tokens=chunk_tokens([]))))", "request 1: chunk_times and chunk_tokens differ"),
        ("importer(run(request(output_tokens=-1)))", "request 1: a number of tokens is below 0"),
        ("importer(run(request(status='ok!')))", "request 1: its status is 'ok!'"),
        ("importer(run(request(), tool=None))", "a name, remark or label of a run is not a text"),
    ],
)
def test_what_makes_no_sense_is_refused(expression: str, error: str, acme: Callable[..., Path]) -> None:
    with pytest.raises(PlugInError) as raised:
        read_results(acme(acme=expression))
    assert str(raised.value).startswith(f"importer 'acme' of servetop-acme 1.0 (acme_import:acme): {error}")


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("importer()", "format acme found no run in it"),
        ("importer(run())", "format acme found a run without requests in it"),
        ('Importer(title="a", recognises=lambda head: True, read=refuse)', "it was cut off: give a whole file"),
    ],
)
def test_a_file_without_a_run_is_the_users_error(expression: str, error: str, acme: Callable[..., Path]) -> None:
    path = acme(acme=expression)
    with pytest.raises(UsageError) as raised:
        read_results(path, "acme")
    assert str(raised.value).startswith(f"{path}: {error}")
    with pytest.raises(UsageError, match=error):
        read_results(path)


def test_a_page_with_statistics_alone_is_refused_with_the_option_that_writes_requests(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Qwen3\n\n============ Serving Benchmark Result ============\nMean TTFT (ms): 1.0\n")
    with pytest.raises(UsageError, match=r"page\.md: it has the statistics that a benchmark prints, and no requests"):
        read_results(page)
