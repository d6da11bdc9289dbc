"""The tables of a page: latencies, totals, stages, episodes, and the manifest."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from servetop.analysis.summary.summary_types import RunSummary, StageSummary
from servetop.core.text import formats
from servetop.reports.page.html_text import Markup, commands_list, data_table, element, joined
from servetop.reports.page.report_page import ReportPage
from servetop.reports.summary.cost_texts import COST_COLUMNS, cost_rows, stage_costs

LATENCIES = {"ttft": "TTFT", "ttft_from_due": "TTFT from due", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL"}
STATISTICS = ("mean", "p50", "p90", "p95", "p99")
LATENCY_CAPTION = "Latency of the successful requests"
STAGE_COLUMNS = (
    "Stage", "Start", "ok", "failed", "req/s", "tok/s", "TTFT p50", "TTFT p99", "TPOT p99", "Preempt.", "Steady s",
)  # fmt: skip
_DEFINITIONS = {
    "TTFT": "time to first token: from sending the request to its first chunk with content; from due: from the time at "
    "which the schedule wanted it sent, as a user feels it",
    "TPOT": "time per output token: (E2EL − TTFT) / (output tokens − those of the first chunk), one value per request",
    "ITL": "inter-token latency: gap between two chunks / tokens of the later chunk, pooled over tokens",
    "E2EL": "end-to-end latency: from sending the request to its last byte",
    "Goodput": "successful requests within every limit, per second of the run; latencies from sent",
    "Attainment": "successful requests within every limit / requests that ended, without cancelled ones",
    "Statistics": "latencies are those of successful requests; percentiles interpolate linearly. Charts over time show "
    "percentiles of the last ten seconds, with an error of at most 1 %",
    "As felt": "counted from the due time, including the wait for the client's own concurrency limit",
}


def latency_table(summary: RunSummary) -> Markup:
    """Return the statistics of each latency in milliseconds."""
    rows = [(LATENCIES[metric], *texts) for metric, texts in latency_texts(summary).items()]
    return data_table(("ms", *STATISTICS), rows, caption=LATENCY_CAPTION)


def latency_texts(summary: RunSummary) -> dict[str, list[str]]:
    """Return the texts of STATISTICS, in milliseconds, of each of LATENCIES that was measured."""
    requests = summary.requests
    return {
        metric: [formats.in_full(requests.latency(metric, each)) for each in STATISTICS]
        for metric in LATENCIES
        if requests.latency(metric, "mean") is not None
    }


def totals_table(summary: RunSummary) -> Markup:
    """Return the totals of the run."""
    return data_table(("", ""), total_rows(summary), caption="Totals")


def total_rows(summary: RunSummary) -> list[tuple[str, str]]:
    """Return the names and texts of the totals that are known."""
    unknown = ("", formats.UNKNOWN, f"{formats.UNKNOWN} / {formats.UNKNOWN}")
    return [(name, text) for name, text in _totals(summary) if text not in unknown]


def _totals(summary: RunSummary) -> Iterator[tuple[str, str]]:
    requests, server, energy = summary.requests, summary.measured.server, summary.measured.energy
    yield "Requests ok / failed / cancelled", f"{requests.completed:,} / {requests.failed:,} / {requests.cancelled:,}"
    yield "Duration", formats.clock(requests.duration)
    yield "Request throughput", _with(formats.number(requests.request_throughput), "req/s")
    yield "Output throughput", _with(formats.number(requests.output_throughput), "tok/s")
    yield "Total token throughput", _with(formats.number(requests.total_token_throughput), "tok/s")
    if summary.set_up.goodput:
        yield (
            f"Goodput ({', '.join(summary.set_up.goodput)} ms)",
            _with(formats.number(requests.request_goodput), "req/s"),
        )
    yield "Peak running / waiting", f"{formats.count(server.max_running)} / {formats.count(server.max_waiting)}"
    yield "Peak requests in flight", formats.count(requests.max_concurrent_requests)
    yield "Prefix cache hits", formats.percent(server.prefix_cache_hit_rate)
    yield "Energy per output token", formats.joules(energy.joules_per_output_token)
    yield from ((name.strip(), text) for name, text in cost_rows(summary.measured.cost))


def _with(text: str, unit: str) -> str:
    return text if text == formats.UNKNOWN else f"{text} {unit}"


def stages_table(summary: RunSummary, letter: str = "") -> Markup | None:
    """Return a row for each stage, with its attainment for the limits of the page's script; None for one stage.

    `letter` is that of the run if the page has several.
    """
    if len(summary.stages) < 2:
        return None
    rows = [
        (*stage_row(each), element("span", "–", data_within_run=letter, data_within_stage=each.stage))
        for each in summary.stages
    ]
    caption = " ".join(filter(None, ("Stages", letter and f"of {letter}", "(latencies in ms)")))
    return data_table((*STAGE_COLUMNS, "Within"), rows, caption=caption)


def costs_table(summary: RunSummary, letter: str = "") -> Markup | None:
    """Return a row for each stage with its costs; None for one stage, which the totals have, or without a price."""
    found = stage_costs(summary.stages) if len(summary.stages) > 1 else None
    if found is None:
        return None
    return data_table(COST_COLUMNS, found.rows, caption=f"{found.title}{letter and f', of {letter}'}")


def stage_row(stage: StageSummary) -> tuple[str, ...]:
    """Return the texts of STAGE_COLUMNS of one stage."""
    requests = stage.measured.requests
    return (
        stage_name(stage),
        formats.clock(stage.start),
        f"{requests.completed:,}",
        f"{requests.failed:,}",
        formats.number(requests.request_throughput),
        formats.number(requests.output_throughput),
        *(formats.in_full(requests.latency(*each)) for each in (("ttft", "p50"), ("ttft", "p99"), ("tpot", "p99"))),
        formats.count(stage.preemptions),
        "–" if stage.steady.seconds is None else f"{stage.steady.seconds:.1f}",
    )


def stage_name(stage: StageSummary) -> str:
    """Return the name of a stage in the tables, such as `8 req/s · batch 32 #2`."""
    repeat = f" #{stage.repeat + 1}" if stage.repeat else ""
    batch = "" if stage.max_num_seqs is None else f" · batch {stage.max_num_seqs}"
    named = stage.label if "batch" in stage.label else f"{stage.label}{batch}"
    return f"{named}{repeat}"


def episodes_table(page: ReportPage) -> Markup | None:
    """Return a row for each episode, which the charts shade; None without any."""
    rows = [
        (
            each.kind.value,
            formats.clock(each.begin),
            "end of run" if each.end is None else formats.clock(each.end),
            formats.seconds(each.seconds(page.record.until)),
        )
        for each in page.record.episodes
    ]
    return data_table(("Episode", "From", "To", "Length"), rows, caption="Episodes") if rows else None


def definitions() -> Markup:
    """Return the definitions of the page's figures."""
    return element("dl", *(joined(element("dt", name), element("dd", text)) for name, text in _DEFINITIONS.items()))


def manifest_part(page: ReportPage) -> Markup:
    """Return the manifest, a table for each section."""
    tables = [
        data_table(("", ""), list(values.items()), caption=name.capitalize()) for name, values in page.manifest.items()
    ]
    return element("div", *tables, class_="manifest")


def repeat_part(page: ReportPage) -> Markup:
    """Return the commands of `repeat_commands`."""
    return commands_list(repeat_commands(page))


def repeat_commands(page: ReportPage) -> dict[str, str]:
    """Return the commands that show, check and repeat the run, by their purpose.

    A search is repeated by its own command only, and a run of another tool by that.
    """
    elsewhere = page.search is not None or page.summary.imported is not None
    again = {} if elsewhere else {"Repeat the run": shlex.join(("servetop", "rerun", page.name))}
    recorded = page.record.header.manifest.get("command_line")
    before = {"Recorded as": shlex.join(map(str, recorded))} if isinstance(recorded, list) else {}
    return {
        **again,
        "Open it on the dashboard": shlex.join(("servetop", "replay", page.name)),
        "Print its figures": shlex.join(("servetop", "summary", page.name)),
        **before,
    }
