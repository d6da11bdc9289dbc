"""Under the tables of a summary: whether its figures may be believed, and why some are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servetop.tui.drawing import formats


def trust_lines(summary: Mapping[str, Any]) -> list[str]:
    """The verdict with its reasons; why there is no ITL; why the peaks of the run or of stages are unknown."""
    trust = summary["trust"]
    words = "; ".join(trust.get("reasons", ())) or "slip, loop lag, rates and engine counters agree"
    source = trust.get("token_source")
    lines = [f"trust      {trust['verdict']}: {words}{f'; tokens by {source}' if source else ''}"]
    if trust["sent_exemption"]:
        share = formats.percent(trust["sent_rate"] / trust["offered_rate"])
        lines.append(f"not judged sent / offered {share}: {trust['sent_exemption']}")
    if summary.get("itl_reason"):
        lines.append(f"no ITL     {summary['itl_reason']}")
    unseen = [stage["label"] for stage in summary["stages"] if stage["server"]["peaks_reason"]]
    if summary["server"]["peaks_reason"]:
        lines.append(f"no peaks   {summary['server']['peaks_reason']}")
    elif unseen:
        lines.append(f"no peaks   of {', '.join(unseen)}: no metrics page of the engine came while they ran")
    return lines
