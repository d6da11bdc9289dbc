"""Holds the JSON of comparisons, checks and series against docs/schema/comparison.json."""

from __future__ import annotations

import json
from typing import Any

from tests.reports.schema.test_summary_schema import ROOT, schema_errors

SCHEMA = json.loads((ROOT / "docs" / "schema" / "comparison.json").read_text())


def comparison_errors(found: Any, name: str = "") -> list[str]:
    """Return what does not fit the schema: that of `compare`, or the definition of this name (`check`, `pairs`)."""
    return schema_errors(found, SCHEMA["$defs"][name] if name else SCHEMA, SCHEMA["$defs"])
