"""The steps between the mean latencies of two runs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from servetop.analysis.reconciliation.adjusted_difference import adjusted_difference
from servetop.analysis.reconciliation.client_rows import ClientRows, ServerTimes
from servetop.analysis.reconciliation.defined_steps import defined_figure, definition_step, window_step
from servetop.analysis.reconciliation.definitions import ReconciledMetric, mean_of
from servetop.analysis.reconciliation.estimated_steps import client_step, property_steps, unexplained_step
from servetop.analysis.reconciliation.load_terms import MANY, LoadScales, load_terms, sent_together
from servetop.analysis.reconciliation.steady_part import LEAST_REQUESTS, SteadyPart, typical_e2el
from servetop.analysis.reconciliation.waterfall import DifferenceWaterfall, Runs, scale_of, waterfall_of
from servetop.analysis.reconciliation.window_requests import BATCH, CACHED, LOAD, OUTPUT, PROMPT, WindowRequests
from servetop.core.arrays import FloatArray

Parts = tuple[SteadyPart, SteadyPart]


def latency_waterfall(metric: ReconciledMetric, runs: Runs, parts: Parts) -> DifferenceWaterfall | None:
    """Return the steps between the means of a latency; None if one of the runs does not have it."""
    figures = (defined_figure(runs[0], metric), defined_figure(runs[1], metric))
    a, b = requests_of_windows(metric, runs, parts)
    known = all(math.isfinite(each.reported) and math.isfinite(each.common) for each in figures)
    if not known or min(a.client.size, b.client.size) < LEAST_REQUESTS:
        return None
    scale = scale_of(metric)
    found = adjusted_difference(a.sample, b.sample)
    steps = [definition_step(*figures)]
    whole = (figures[0].common, figures[1].common)
    steps.append(window_step(runs, parts, whole=whole, within=(a.mean * scale, b.mean * scale)))
    steps += property_steps(metric, found, (a, b), scale=scale)
    steps.append(client_step((a, b), scale=scale))
    explained = sum(each.effect or 0.0 for each in steps)
    rest = figures[1].reported - figures[0].reported - explained
    spread = (found.rest.high - found.rest.low) / 2 * scale
    steps.append(unexplained_step(rest, spread=spread, figures=figures))
    return waterfall_of(metric, steps, a=figures[0].reported, b=figures[1].reported)


def requests_of_windows(metric: ReconciledMetric, runs: Runs, parts: Parts) -> tuple[WindowRequests, WindowRequests]:
    """Return the requests of both windows, with the same terms."""
    rows = (runs[0].rows, runs[1].rows)
    both = all(each.server is not None for each in rows)
    scales = LoadScales(
        closed=all(each.closed for each in runs),
        lifetime=typical_e2el(*rows),
        burst=2 * mean_of(np.concatenate([each.ttft[each.ok] for each in rows])),
        step=mean_of(np.concatenate([each.tpot[each.ok] for each in rows])),
        many=min(int(each.ok.sum()) for each in rows) >= MANY,
    )
    one, other = (_within(metric, each, part, scales, both=both) for each, part in zip(rows, parts, strict=True))
    shared = [name for name in one.terms if name in other.terms]
    first, second = (replace(each, terms={name: each.terms[name] for name in shared}) for each in (one, other))
    return first, second


def _within(
    metric: ReconciledMetric, rows: ClientRows, part: SteadyPart, scales: LoadScales, *, both: bool
) -> WindowRequests:
    client, server = _values(metric, rows, rows), None
    kept = part.sent_within(rows) & rows.ok & ~np.isnan(client)
    sent, ended, prompt = rows.sent, rows.ended, rows.prompt
    if both and rows.server is not None:
        server = _values(metric, rows.server, rows)
        sent, ended, prompt = rows.server.arrived, rows.server.ended, rows.server.prompt
        kept = kept & ~np.isnan(server)
    terms = {PROMPT: prompt[:, None], OUTPUT: rows.output[:, None]}
    if rows.times_known:
        filled = np.where(np.isnan(prompt), mean_of(prompt), prompt)
        terms |= {LOAD: load_terms(sent, ended, scales), BATCH: sent_together(sent, filled, scales.step)[:, None]}
    if not np.isnan(rows.cached[kept]).any():
        terms[CACHED] = rows.cached[:, None]
    weights = rows.later if metric is ReconciledMetric.ITL else np.ones(client.shape)
    return WindowRequests(
        client=client[kept],
        server=None if server is None else server[kept],
        weights=weights[kept],
        terms={name: each[kept] for name, each in terms.items()},
        rows=rows.where(kept),
        batch=sent_together(sent, np.ones(sent.shape), scales.step)[kept],
        closed=scales.closed,
    )


def _values(metric: ReconciledMetric, times: ClientRows | ServerTimes, rows: ClientRows) -> FloatArray:
    """Return the latency of each request, by servetop's definition; NaN is unknown."""
    match metric:
        case ReconciledMetric.TTFT:
            return times.ttft
        case ReconciledMetric.TPOT:
            return times.tpot
        case ReconciledMetric.ITL:
            several = np.where(rows.later > 0, rows.later, math.nan)
            return np.asarray(times.span / several)
        case _:
            return times.e2el
