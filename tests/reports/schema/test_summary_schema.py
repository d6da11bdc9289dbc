"""The JSON schema of the summary: current, and every golden recording's summary is valid."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from servetop.analysis.summary.summary_json import summary_json
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.schema.summary_schema import summary_schema
from servetop.reports.summary.summary import run_summary

ROOT = Path(__file__).parents[3]
GOLDEN = ("dies", "vllm", "whitepaper", "without_metrics")
SCHEMA = json.loads((ROOT / "docs" / "schema" / "summary.json").read_text())
TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),),
    "array": (list,), "object": (dict,),
}  # fmt: skip


def errors(value: Any, schema: Mapping[str, Any], where: str = "summary") -> list[str]:
    """The mismatches of a summary."""
    return schema_errors(value, schema, SCHEMA["$defs"], where)


def schema_errors(
    value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any], where: str = "summary"
) -> list[str]:
    """The mismatches of a value, for the parts of JSON Schema that our schemas use."""
    if "$ref" in schema:
        return schema_errors(value, definitions[schema["$ref"].removeprefix("#/$defs/")], definitions, where)
    if "const" in schema or "enum" in schema:
        return [] if value in schema.get("enum", [schema.get("const")]) else [f"{where}: {value!r}"]
    if "anyOf" in schema:
        return (
            []
            if any(not schema_errors(value, each, definitions, where) for each in schema["anyOf"])
            else [f"{where}: {value!r}"]
        )
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    boolean = isinstance(value, bool) and "boolean" not in kinds
    if boolean or not isinstance(value, tuple(each for kind in kinds for each in TYPES[kind])):
        return [f"{where}: {value!r} is not {kinds}"]
    if isinstance(value, list):
        return [
            error
            for number, each in enumerate(value)
            for error in schema_errors(each, schema["items"], definitions, f"{where}[{number}]")
        ]
    if isinstance(value, dict):
        return _object_errors(value, schema, definitions, where)
    return []


def _object_errors(
    value: Mapping[str, Any], schema: Mapping[str, Any], definitions: Mapping[str, Any], where: str
) -> list[str]:
    found = [f"{where}: no {name}" for name in schema.get("required", ()) if name not in value]
    for name, each in value.items():
        patterns = [part for pattern, part in schema.get("patternProperties", {}).items() if re.search(pattern, name)]
        parts = [*([schema["properties"][name]] if name in schema.get("properties", {}) else []), *patterns]
        found += [error for part in parts for error in schema_errors(each, part, definitions, f"{where}.{name}")]
        found += [] if parts or schema.get("additionalProperties", True) else [f"{where}: unexpected {name}"]
    return found


def golden_summary(name: str, folder: Path, **options: Any) -> dict[str, Any]:
    path = shutil.copy(ROOT / "tests" / "golden" / f"{name}.servetop", folder)
    with contextlib.closing(RecordingReader.open(Path(path))) as reader:
        summary: dict[str, Any] = json.loads(json.dumps(summary_json(run_summary(reader, **options))))
    return summary


def test_the_schema_in_docs_is_current() -> None:
    assert summary_schema() == SCHEMA, "run: make schema"


@pytest.mark.parametrize("name", GOLDEN)
def test_the_summary_of_a_golden_recording_is_valid(tmp_path: Path, name: str) -> None:
    assert errors(golden_summary(name, tmp_path, percentiles=(75.0, 99.9)), SCHEMA) == []


def test_a_wrong_summary_is_not_valid(tmp_path: Path) -> None:
    summary = golden_summary("dies", tmp_path)
    summary["completed"] = "many"
    summary["trust"].pop("verdict")
    summary["stages"][0]["unknown"] = 1
    assert errors(summary, SCHEMA) == [
        "summary.completed: 'many' is not ['integer']",
        "summary.trust: no verdict",
        "summary.stages[0]: unexpected unknown",
    ]
