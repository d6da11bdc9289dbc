"""What estimated rates are multiplied with for an interval of 90 %, by the evidence.

Written by `make judge-rates` from runs whose truth is known: do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping

from servetop.analysis.diagnosis.rate_interval import Factors

SUSTAINABLE: Mapping[str, Factors] = {
    "work known within 5 %": (0.9, 1.09),
    "work less known": (0.8, 1.13),
    "bursty arrivals": (0.8, 1.26),
}

KNEE: Mapping[str, Factors] = {
    "work known within 5 %": (0.95, 1.09),
    "work less known": (0.87, 1.2),
    "bursty arrivals": (0.9, 1.12),
}
