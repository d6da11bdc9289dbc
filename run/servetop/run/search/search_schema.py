"""JSON schema of the result of a search, from its types: `python -m servetop.run.search.search_schema`."""

from __future__ import annotations

import json
from typing import Any

from servetop.reports.schema.summary_schema import object_schema
from servetop.run.search.search_result import SearchResult

VERSION = "1.1"
"""The major version changes when a key is removed or changes its meaning, the minor version when one is added."""


def search_schema() -> dict[str, Any]:
    """Return the schema as dictionaries and lists (JSON Schema, draft 2020-12)."""
    definitions: dict[str, Any] = {}
    root = object_schema(SearchResult, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:servetop:search:{VERSION}",
        "title": "Result of a search (servetop search --json)",
        "version": VERSION,
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


if __name__ == "__main__":
    print(json.dumps(search_schema(), indent=2))  # noqa: T201
