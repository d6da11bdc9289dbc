"""The scanner finds in a page what prometheus_client's parser finds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from servetop.engines.prometheus import scan

names = st.sampled_from(["vllm:a", "vllm:a_b", "vllm:a_total", "vllm:a_bucket", "other", "a"])
label_names = st.sampled_from(["engine", "model_name", "le", "_x"])
label_values = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\x85\u2028\u2029\x0b\x0c\x1c\x1d\x1e"), max_size=12
)
values = st.floats(allow_nan=True, allow_infinity=True)
rows = st.tuples(names, st.dictionaries(label_names, label_values, max_size=3), values)


def line(name: str, labels: dict[str, str], value: float) -> str:
    escaped = {key: text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"') for key, text in labels.items()}
    inside = ",".join(f'{key}="{text}"' for key, text in escaped.items())
    number = {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, repr(value))
    return f"{name}{{{inside}}} {number}" if labels else f"{name} {number}"


@given(st.lists(rows, max_size=8))
def test_values_and_labels_equal_those_of_the_reference_parser(
    page_rows: list[tuple[str, dict[str, str], float]],
) -> None:
    page = "# HELP vllm:a text\n# TYPE vllm:a gauge\n" + "".join(line(*row) + "\n" for row in page_rows)
    wanted = {"vllm:a", "vllm:a_total", "vllm:a_bucket"}
    expected = [
        (sample.name, dict(sample.labels), repr(sample.value))
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name in wanted
    ]
    found = [(name, dict(row.labels), repr(row.value)) for name, rows in scan(page, wanted).items() for row in rows]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


@given(st.text())
def test_no_text_whatever_makes_it_fail(page: str) -> None:
    scan(page, {"vllm:a", page.split("{")[0].split(" ")[0]})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("vllm:a 3", 3.0),
        ('vllm:a{model="}\\" 9 {"} 4e2 1795252818000', 400.0),
        ("vllm:a\t5", None),
        ("vllm:a{engine=\"0\"", None),
        ("vllm:a", None),
        ("vllm:a nonsense", None),
        ("<title>vllm:a 3</title>", None),
    ],
)  # fmt: skip
def test_a_line_gives_its_value_or_nothing(text: str, value: float | None) -> None:
    rows = scan(text, {"vllm:a"}).get("vllm:a", [])
    assert [row.value for row in rows] == ([] if value is None else [value])
