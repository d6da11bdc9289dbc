"""Selects the rows of a metrics page that count: those of the model under load, once per group of ranks.

A router's page, or a Prometheus server, has the rows of several models (label `model_name`). Tensor, pipeline, context
and expert parallel ranks of an engine process the same requests, so each of their rows has all of them; only data
parallel ranks (`dp_rank`, vLLM's `engine`) have requests of their own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from servetop.engines.metrics.prometheus_text import is_text, parse_line

MODEL = "model_name"
TARGETS = ("instance", "pod", "server")
"""Labels that name the server of a row, on pages that join those of several."""
_RANK, _DATA_PARALLEL = "_rank", ("dp_rank", "data_parallel")


@dataclass(frozen=True, slots=True)
class _Row:
    line: str
    name: str
    labels: Mapping[str, str]
    value: float


def own_rows(page: bytes, models: Collection[str]) -> bytes:
    """Return the page without the rows of models other than these, and with one row for each group of ranks.

    A page with rows of a single model, whatever its name, is that of the engine behind a server that renames models.
    Without `models` all models count.
    """
    if has_own_rows_only(page, models):
        return page
    lines = page.decode("utf-8", errors="replace").split("\n")
    rows = [row for line in lines if (row := _row(line)) is not None]
    return "".join(f"{row.line}\n" for row in _one_per_group(_of_models(rows, models))).encode()


def has_own_rows_only(page: bytes, models: Collection[str]) -> bool:
    """Whether all rows of a page count, as far as its text tells at a glance."""
    return not is_text(page) or not (_may_have_ranks(page) or _may_have_other_models(page, models))


def other_models(page: bytes, models: Collection[str]) -> list[str]:
    """Return the models of the page if it has several and none of these, so that no row can be attributed."""
    if not models or not is_text(page) or not _may_have_other_models(page, models):
        return []
    rows = map(_row, page.decode("utf-8", errors="replace").split("\n"))
    found = {row.labels[MODEL] for row in rows if row is not None and MODEL in row.labels}
    return sorted(found) if len(found) > 1 and found.isdisjoint(models) else []


def related_models(model: str, results_of_models: object) -> frozenset[str]:
    """Return the names under which a model's server may export its metrics, from its list of models (`/v1/models`).

    These are the name itself, the base of a LoRA adapter (`parent`, or the part before a colon), and other names with
    the same `root`, of which vLLM exports the first only.
    """
    rows = results_of_models.get("data") if isinstance(results_of_models, dict) else results_of_models
    cards = {str(each.get("id")): each for each in rows if isinstance(each, dict)} if isinstance(rows, list) else {}
    parent, before = cards.get(model, {}).get("parent"), model.partition(":")[0]
    names = {model, *([parent] if isinstance(parent, str) else []), *([before] if before in cards else [])}
    roots = {name: card["root"] for name, card in cards.items() if isinstance(card.get("root"), str)}
    own = {roots[name] for name in names if name in roots}
    return frozenset(names | {name for name, root in roots.items() if root in own})


def _may_have_ranks(page: bytes) -> bool:
    return b"_rank" in page


def _may_have_other_models(page: bytes, models: Collection[str]) -> bool:
    """Whether a row may name another model; two counts of a page take microseconds."""
    own = sum(page.count(f'{MODEL}="{each}"'.encode()) for each in models)
    return bool(models) and page.count(MODEL.encode()) > own


def _row(line: str) -> _Row | None:
    found = None if line.startswith("#") else parse_line(line)
    return None if found is None else _Row(line, found[0], found[1].labels, found[1].value)


def _of_models(rows: Sequence[_Row], models: Collection[str]) -> Sequence[_Row]:
    names = {row.labels[MODEL] for row in rows if MODEL in row.labels}
    if not models or names <= set(models) or (len(names) == 1 and names.isdisjoint(models)):
        return rows
    own = [row for row in rows if row.labels.get(MODEL) in models]
    servers = {(label, row.labels[label]) for row in own for label in TARGETS if label in row.labels}
    return [
        row for row in rows if row.labels.get(MODEL) in models or (MODEL not in row.labels and _is_own(row, servers))
    ]


def _is_own(row: _Row, servers: Collection[tuple[str, str]]) -> bool:
    """Whether a row without a model is that of a server with the model, on a page with several models."""
    targets = [(label, row.labels[label]) for label in TARGETS if label in row.labels]
    return any(each in servers for each in targets) if targets else not row.name.endswith("_info")


def _one_per_group(rows: Sequence[_Row]) -> Iterator[_Row]:
    """Yield the largest of the rows that differ in their ranks only: one rank may be a step behind another."""
    best: dict[tuple[str, frozenset[tuple[str, str]]], _Row] = {}
    for row in rows:
        key = (row.name, frozenset(each for each in row.labels.items() if not _repeats(each[0])))
        if key not in best or row.value > best[key].value or math.isnan(best[key].value):
            best[key] = row
    yield from best.values()


def _repeats(label: str) -> bool:
    return label.endswith(_RANK) and not any(each in label for each in _DATA_PARALLEL)
