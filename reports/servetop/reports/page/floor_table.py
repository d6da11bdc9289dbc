"""The median request of a run beside the least time that one request alone can take."""

from __future__ import annotations

from servetop.analysis.summary.summary_types import RunSummary
from servetop.core.text import formats
from servetop.core.units import MS_PER_S
from servetop.reports.page.html_text import Markup, data_table, element, joined
from servetop.reports.summary.request_floor import RequestFloor


def floor_table(floor: RequestFloor, summary: RunSummary) -> Markup:
    """Return the table of the lower bounds, the measured medians and their factor, and the assumptions below it."""
    rows = []
    for label, metric, bound in (("TTFT", "ttft", floor.ttft), ("TPOT", "tpot", floor.tpot)):
        measured = summary.requests.latency(metric, "p50")
        seconds = None if measured is None else measured / MS_PER_S
        rows.append(
            (
                label,
                formats.seconds(bound),
                "\u2013" if seconds is None else formats.seconds(seconds),
                "\u2013" if seconds is None else f"{seconds / bound:.3g} \u00d7",
            )
        )
    columns = ("One request", "At least", "Measured p50", "Factor")
    table = data_table(columns, rows, caption="The median request beside its lower bound")
    return joined(table, element("p", _assumptions(floor), class_="figures"))


def _assumptions(floor: RequestFloor) -> str:
    """Say in one line what the bounds follow from."""
    gpus = floor.gpu.name if floor.gpus == 1 else f"{floor.gpus} \u00d7 {floor.gpu.name}"
    prompt, context = (f"{tokens:,.0f} tokens" for tokens in (floor.request.prompt_tokens, floor.context))
    first = (
        f"the arithmetic of {prompt} of prompt at {floor.gpu.flops / 1e12:,.0f} TFLOP/s"
        if floor.prompt_is_computed
        else "one reading of the weights"
    )
    return (
        f"Lower bound for one request alone on {gpus}, {floor.model.name} in 16 bits: to the first token {first}; "
        f"for each later one the weights ({floor.model.gemm_weight_bytes / 1e9:,.3g} GB) and the KV of {context} "
        f"at {floor.gpu.bandwidth / 1e9:,.0f} GB/s. Queueing and batching are in the factor."
    )
