"""What estimated rates are multiplied with for an interval of 90 %, by the limit of the overload.

Written by `make judge-rates` from runs whose truth is known: do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping

from servetop.analysis.judgement.rate_interval import Factors

SUSTAINABLE: Mapping[str, Factors] = {
    "KV-bound": (0.72, 1.11),
    "batch-bound": (0.88, 1.19),
    "rate above capacity": (0.84, 1.11),
}

KNEE: Mapping[str, Factors] = {
    "KV-bound": (0.92, 1.16),
    "batch-bound": (0.94, 1.06),
    "rate above capacity": (0.93, 1.14),
}
