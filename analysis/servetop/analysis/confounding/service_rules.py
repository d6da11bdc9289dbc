"""Whether the client, the replicas, failing requests or a failing engine made the difference between two runs."""

from __future__ import annotations

import math

from servetop.analysis.confounding.conditions import ClientLoad, RunConditions
from servetop.analysis.confounding.confounder import ALL_METRICS, RATES, Confounder, ConfounderKind
from servetop.analysis.trust.trust_verdict import TrustVerdict
from servetop.core.events import Severity
from servetop.core.text.counted import counted
from servetop.core.units import MS_PER_S

LATE_LIMIT = 0.020
"""Seconds by which slip or loop lag must exceed the other run's: a fifth of the trust meter's limit."""
LATE_FACTOR = 3.0
"""Factor by which it must exceed it, too."""
BOUND_FACTOR = 2.0
"""The same if only one client is bound by the trust meter: values just above and below its limits are chance."""
CPU_LIMIT = 0.85
"""CPU share of the senders above which requests wait for them (M/D/1: 2.8 service times on average)."""
CPU_DIFFERENCE = 0.25
"""Difference of the CPU shares above which that is a difference between the runs."""
SHARE_LIMIT = 0.15
"""Fraction of the load on other replicas (total variation distance) that matters."""
SHARE_ERRORS = 4.0
FAILED_LIMIT = 0.01
"""Difference of the fractions of failed requests that matters."""
FAILED_FACTOR = 3.0
MIN_FAILED = 5


def client_confounder(a: RunConditions, b: RunConditions) -> Confounder | None:
    """Name a client that sent or read late, or was close to that, if the other one was not."""
    reasons = [(_reason(one.client, other.client), side) for one, other, side in ((a, b, "A"), (b, a, "B"))]
    found = [(reason, side) for reason, side in reasons if reason]
    if len(found) != 1:
        return None
    bound = {"A": a, "B": b}[found[0][1]].client.trust.verdict is TrustVerdict.CLIENT_BOUND
    return Confounder(
        kind=ConfounderKind.CLIENT,
        text=f"the client of {found[0][1]} was the busier one: {found[0][0]}",
        evidence={
            "slip p99": (a.client.trust.slip_p99, b.client.trust.slip_p99),
            "loop lag p99": (a.client.trust.loop_lag_p99, b.client.trust.loop_lag_p99),
            "cpu share": (a.client.cpu_share, b.client.cpu_share),
        },
        metrics=ALL_METRICS,
        severity=Severity.ERROR if bound else Severity.WARNING,
    )


def _reason(client: ClientLoad, other: ClientLoad) -> str:
    """Return why a client was too busy in comparison with another one; empty if it was not."""
    trust, calm = client.trust, other.trust
    bound = trust.verdict is TrustVerdict.CLIENT_BOUND and calm.verdict is not TrustVerdict.CLIENT_BOUND
    if bound and max(trust.slip_p99, trust.loop_lag_p99) > BOUND_FACTOR * max(calm.slip_p99, calm.loop_lag_p99):
        return trust.reasons[0]
    if _later(trust.slip_p99, calm.slip_p99):
        return f"requests sent {trust.slip_p99 * MS_PER_S:.0f} ms late at p99, and {calm.slip_p99 * MS_PER_S:.1f} ms"
    if _later(trust.loop_lag_p99, calm.loop_lag_p99):
        lags = trust.loop_lag_p99 * MS_PER_S, calm.loop_lag_p99 * MS_PER_S
        return f"its event loop lagged {lags[0]:.0f} ms at p99, and {lags[1]:.1f} ms"
    if client.cpu_share > CPU_LIMIT and client.cpu_share - other.cpu_share > CPU_DIFFERENCE:
        return f"its senders used {client.cpu_share:.0%} of their processors, and {other.cpu_share:.0%}"
    return ""


def _later(late: float, calm: float) -> bool:
    return late - calm > LATE_LIMIT and late > LATE_FACTOR * calm


def replicas_confounder(a: RunConditions, b: RunConditions) -> Confounder | None:
    """Compare how many replicas served anything, and the shares that each served, whatever their order."""
    left, right = a.replicas, b.replicas
    if left.configured != right.configured or not left.shares or not right.shares:
        return None
    evidence = {
        "replicas": (float(left.answered), float(right.answered)),
        "largest share": (left.shares[0], right.shares[0]),
    }
    if left.answered != right.answered:
        text = f"{right.answered} of {right.configured} replicas served requests in B and {left.answered} in A"
    else:
        distance = sum(abs(x - y) for x, y in zip(left.shares, right.shares, strict=True)) / 2
        fewest = max(min(left.requests, right.requests), 1)
        if distance <= max(SHARE_LIMIT, SHARE_ERRORS * math.sqrt(left.configured / fewest) / 2):
            return None
        text = (
            f"the busiest of {left.configured} replicas served {right.shares[0]:.0%} in B and {left.shares[0]:.0%} in A"
        )
    return Confounder(kind=ConfounderKind.REPLICAS, text=text, evidence=evidence, metrics=ALL_METRICS)


def failures_confounder(a: RunConditions, b: RunConditions) -> Confounder | None:
    """Compare the fractions of failed requests."""
    shares = tuple(each.failed / each.requests if each.requests else 0.0 for each in (a, b))
    less, more = sorted(shares)
    if more - less <= FAILED_LIMIT or more <= FAILED_FACTOR * less or max(a.failed, b.failed) < MIN_FAILED:
        return None
    return Confounder(
        kind=ConfounderKind.FAILURES,
        text=f"{shares[1]:.1%} of the requests failed in B and {shares[0]:.1%} in A, and have no latency",
        evidence={"failed": (shares[0], shares[1])},
        metrics=(*RATES, "ttft", "e2el"),
    )


def engine_errors_confounder(a: RunConditions, b: RunConditions) -> Confounder | None:
    """Name an engine that restarted or logged errors, if the other one did not."""
    if (a.restarts > 0) != (b.restarts > 0):
        count, side = max((a.restarts, "A"), (b.restarts, "B"))
        text = f"the engine of {side} restarted {counted(count, 'time')}"
    elif (a.error_lines > 0) != (b.error_lines > 0):
        count, side = max((a.error_lines, "A"), (b.error_lines, "B"))
        text = f"the engine of {side} logged {counted(count, 'error')}, the other one none"
    else:
        return None
    return Confounder(
        kind=ConfounderKind.ENGINE_ERRORS,
        text=text,
        evidence={
            "restarts": (float(a.restarts), float(b.restarts)),
            "error lines": (float(a.error_lines), float(b.error_lines)),
        },
        metrics=ALL_METRICS,
    )
