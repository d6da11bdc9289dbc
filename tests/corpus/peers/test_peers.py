"""The explanations of what other clients read name clients and responses that exist; no client is needed for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus.corpus import Case, load_cases
from tests.corpus.data_corpus import load_data
from tests.corpus.metrics_corpus import load_metrics_cases
from tests.corpus.peers.comparison import METRICS_PEER, compare_metrics
from tests.corpus.peers.data_differences import DATA_FIELDS, data_differences
from tests.corpus.peers.data_readings import DataJob, DataPeerReading
from tests.corpus.peers.differences import (
    EXPLANATIONS,
    RESPONSE_FIELDS,
    Difference,
    Kind,
    load_kinds,
    response_differences,
    unexplained,
    unneeded,
)
from tests.corpus.peers.peers import PEERS, Peer
from tests.corpus.peers.readings import PeerReading, load_jobs, write_jobs
from tests.house.source_tree import TOP

CASES = {case.name: case for case in load_cases()}
NAMES = [*(peer.name for peer in PEERS), METRICS_PEER]
FIELDS = {"responses": RESPONSE_FIELDS, "data": DATA_FIELDS, "metrics": ("rows",)}
DATA = {case.name: case for case in load_data()}
FILES = {"responses": set(CASES), "data": set(DATA), "metrics": {case.name for case in load_metrics_cases()}}


def kind(*cases: str) -> Kind:
    return Kind(name="k", corpus="responses", fields=("content",), reads="a", right="b", why="c", cases=cases)


def differing(case: Case, **found: object) -> list[str]:
    reading = PeerReading(**{"ok": True} | found)  # type: ignore[arg-type]  # its fields
    return [each.field for each in response_differences(case, reading)]


def test_every_file_of_explanations_belongs_to_a_client() -> None:
    assert {path.stem for path in EXPLANATIONS.iterdir()} <= set(NAMES)


@pytest.mark.parametrize("peer", NAMES)
def test_explanations_name_files_and_fields_that_exist(peer: str) -> None:
    for each in load_kinds(peer):
        assert set(each.fields) <= set(FIELDS[each.corpus])
        assert sorted(set(each.cases) - FILES[each.corpus]) == []
        assert len(set(each.cases)) == len(each.cases) > 0
        assert all((each.reads, each.right, each.why))


@pytest.mark.parametrize("peer", PEERS, ids=[peer.name for peer in PEERS])
def test_every_client_has_its_readers(peer: Peer) -> None:
    assert all((EXPLANATIONS.parent / "readers" / f"{module}.py").exists() for module in peer.modules.values())
    assert {kind.corpus for kind in load_kinds(peer.name)} <= set(peer.modules)


@pytest.mark.parametrize("peer", [peer.package for peer in PEERS])
def test_what_is_installed_is_named_among_the_dependencies(peer: str) -> None:
    assert peer in (TOP / "docs/reference/dependencies.md").read_text(encoding="utf-8")


def test_what_a_client_reads_otherwise_is_found() -> None:
    case = CASES["plain-chat"]
    right = {"content": case.content, "reasoning": case.reasoning, "output_tokens": case.output_tokens}
    assert differing(case, **right) == []
    assert differing(case, ok=False) == ["ok"]
    assert differing(case, content="One", output_tokens=7) == ["content", "output_tokens"]


def test_the_words_of_the_server_are_compared_where_both_see_a_failure() -> None:
    case = CASES["error-object"]
    assert differing(case, ok=False, error=f"APIError: {case.reason}") == []
    assert differing(case, ok=False, error="failed") == ["words"]
    assert differing(case) == ["ok"]


def differing_data(name: str, **found: object) -> list[str]:
    return [each.field for each in data_differences(DATA[name], DataPeerReading(**found))]  # type: ignore[arg-type]


def test_rows_of_data_files_are_compared_by_number_and_by_value() -> None:
    assert differing_data("json-array", texts=DATA["json-array"].expected("texts")) == []
    assert differing_data("json-array", texts=["One?", "Two?"], outputs=[1, 9]) == ["texts", "outputs"]
    assert differing_data("json-array", texts=["One?"]) == ["rows"]
    assert differing_data("json-array", error="ValueError: no rows") == ["rows"]
    assert differing_data("json-array", skipped="no loader") == []


def test_a_data_file_may_be_refused_where_it_has_malformed_rows() -> None:
    assert differing_data("jsonl-cut", error="ValueError: line 2") == []
    assert differing_data("jsonl-cut", texts=[]) == ["rows"]
    assert differing_data("json-array-empty", error="ValueError: no rows") == []
    assert differing_data("json-array-empty", texts=["One?"]) == ["rows"]


def test_rows_that_a_client_shuffles_are_compared_in_any_order() -> None:
    lengths = DATA["burstgpt"].expected("lengths")[::-1]
    assert differing_data("burstgpt", lengths=lengths) == ["lengths"]
    assert differing_data("burstgpt", lengths=lengths, shuffled=True) == []


def test_a_reader_process_gets_the_bytes_of_the_files(tmp_path: Path) -> None:
    jobs = [DataJob(name="latin1", body=b"caf\xe9\x00", dataset="csv", outputs=False)]
    write_jobs(tmp_path / "jobs.json", jobs)
    assert load_jobs(tmp_path / "jobs.json", DataJob) == jobs


def test_a_difference_without_an_explanation_and_the_reverse_are_found() -> None:
    found = Difference(case="plain-chat", field="content", found="One", right="One two")
    assert unexplained([found], [kind("plain-chat")]) == []
    assert unexplained([found], [kind("refusal")]) == [found]
    assert [case for _, case in unneeded([found], [kind("plain-chat", "refusal")])] == ["refusal"]


def test_every_metrics_page_is_compared_with_the_reference_parser() -> None:
    compared = compare_metrics(load_metrics_cases())
    assert list(compared.faults()) == []
    assert compared.tried == len(FILES["metrics"]) > compared.same > 0
