"""Refuses options that another choice leaves without an effect: nothing on a command line is ignored without a word.

A value that is also the default is accepted everywhere, as in `--burstiness 1`: it says what happens anyway. Values of
files are not refused, because a file may serve several command lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from servetop.cli.options.check_options import CheckOptions
from servetop.cli.options.conversion import convert
from servetop.cli.options.declaration import GivenValues, declared
from servetop.cli.options.run_options import ReplayOptions, RunOptions, SweepOptions
from servetop.cli.options.tool_options import SummaryOptions
from servetop.core.config import RunConfig, StageConfig
from servetop.core.errors import UsageError

if TYPE_CHECKING:
    from servetop.cli.configuration.output import Output

_Choices = TypeVar("_Choices")


@dataclass(frozen=True, slots=True)
class Idle(Generic[_Choices]):
    """A reason for which an option has no effect."""

    when: Callable[[_Choices], bool]
    text: str
    """What makes it idle, and what to do; follows the name of the option."""


@dataclass(frozen=True, slots=True)
class RunChoices:
    """What the options of a run amount to."""

    config: RunConfig
    output: Output | None = None
    """None for a command that only records, such as `run-pairs`, or that only asks a server."""

    @property
    def has_dashboard(self) -> bool:
        """Whether the command draws the dashboard, in a terminal or in a browser."""
        options = self.output.options if self.output is not None else None
        return options is not None and not (options.headless or options.as_json or options.detach)

    @property
    def measured(self) -> list[StageConfig]:
        """The stages without warm-ups."""
        return [stage for stage in self.config.stages if not stage.warmup]

    @property
    def without_rate(self) -> bool:
        """Whether no stage has a rate, so that no arrival process sets when requests are due."""
        return bool(self.measured) and all(math.isinf(stage.request_rate) for stage in self.measured)

    @property
    def closed(self) -> bool:
        """Whether some stage is a closed loop."""
        return any(math.isinf(stage.request_rate) and stage.max_concurrency for stage in self.measured)

    @property
    def encrypted(self) -> bool:
        """Whether any server is reached over TLS."""
        engine = self.config.engine
        urls = (engine.url, *engine.more_urls, engine.front_door, engine.metrics_url)
        return any((url or "").lower().startswith("https:") for url in urls)

    def replaces(self, field: str) -> bool:
        """Whether `--extra-body` sets this field of a request to another value than its option, or removes it."""
        workload = self.config.workload
        return field in workload.extra_body and workload.extra_body[field] != getattr(workload, field)

    @property
    def replaces_output_len(self) -> bool:
        """Whether `--extra-body` sets another limit than `--output-len`."""
        limits = filter(None, map(self.config.workload.extra_body.get, _TOKEN_LIMITS))
        return any(limit != self.config.workload.output_len for limit in limits)


def _run(when: Callable[[RunChoices], bool], text: str) -> Idle[RunChoices]:
    return Idle(when, text)


_ATTACHED = _run(
    lambda run: run.config.engine.url is not None, "the server at --url is already running: leave out one of the two"
)
_STARTED = _run(lambda run: run.config.engine.url is None, "servetop starts this engine: leave it out, or give --url")
_PLAIN_HTTP = _run(
    lambda run: not run.encrypted, "the connection is not encrypted: leave it out, or give an https:// URL"
)
_INSECURE = _run(
    lambda run: run.config.engine.connection.insecure, "--insecure accepts any certificate: leave out one of the two"
)
_CLOSED = _run(
    lambda run: run.without_rate and run.closed,
    "a closed loop sends whenever --max-concurrency allows: leave it out, or give --request-rate",
)
_AT_ONCE = _run(
    lambda run: run.without_rate and not run.closed and run.config.workload.arrivals != "all-at-once",
    "all requests are due at once: leave it out, or give --request-rate",
)
_NO_USERS = _run(
    lambda run: run.without_rate and not run.closed and not run.config.workload.conversational,
    "all requests are due at once: leave it out, or give --max-concurrency",
)
_NO_RAMP = _run(
    lambda run: all(stage.ramp_from is None for stage in run.measured),
    "no stage of --ramp changes its rate: leave it out, or give one as from-to:duration",
)
_NOT_KEPT = _run(
    lambda run: run.output is not None and run.output.no_record,
    "--no-record keeps no recording: leave out one of the two",
)
_NO_DASHBOARD = _run(
    lambda run: not run.has_dashboard,
    "it is for the dashboard, which --headless, --json and --detach do not show: leave it out",
)
_NO_PAGE = _run(
    lambda run: run.output is None or run.output.web is None, "it is for the page of --web: leave it out, or give --web"
)
_NO_METRICS = _run(
    lambda run: run.output is None or run.output.options.exporter.prometheus_port is None,
    "it is for the metrics of --prometheus-port: leave it out, or give --prometheus-port",
)
_TWICE = "--extra-body sets or removes it too: leave out one of the two"
_TOKEN_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Fields of a request that replace the length of `--output-len`."""
_HEADERS = _run(
    lambda run: bool(_lower(run.config.workload.headers) & _lower(run.config.workload.header_env)),
    "--header-env sets the same header: leave out one of the two",
)

OF_RUNS: Mapping[str, tuple[Idle[RunChoices], ...]] = {
    "port": (_ATTACHED,),
    "start_timeout": (_ATTACHED,),
    "attach_timeout": (_STARTED,),
    "ca_cert": (_PLAIN_HTTP, _INSECURE),
    "client_cert": (_PLAIN_HTTP,),
    "client_key": (_PLAIN_HTTP,),
    "insecure": (_PLAIN_HTTP,),
    "arrivals": (_CLOSED, _AT_ONCE),
    "burstiness": (_CLOSED, _AT_ONCE),
    "time_scale": (_CLOSED, _AT_ONCE),
    "jitter": (_CLOSED, _AT_ONCE),
    "think_time": (_NO_USERS,),
    "ramp_up_strategy": (_NO_RAMP,),
    "output_len": (_run(lambda run: run.replaces_output_len, _TWICE),),
    "ignore_eos": (_run(lambda run: run.replaces("ignore_eos"), _TWICE),),
    "temperature": (_run(lambda run: run.replaces("temperature"), _TWICE),),
    "stream": (_run(lambda run: run.replaces("stream"), _TWICE),),
    "n": (_run(lambda run: run.replaces("n"), _TWICE),),
    "header": (_HEADERS,),
    "store_texts": (_NOT_KEPT,),
    "metadata": (_NOT_KEPT,),
    "theme": (_NO_DASHBOARD,),
    "reduced_motion": (_NO_DASHBOARD,),
    "prometheus_host": (_NO_METRICS,),
    "web_host": (_NO_PAGE,),
    "web_port": (_NO_PAGE,),
    "web_steer": (_NO_PAGE,),
}
"""By option of a run, the choices that leave it without an effect."""

_EXAMPLE: Idle[SweepOptions] = Idle(
    lambda sweep: sweep.example, "--example prints a sweep file and exits: leave out one of the two"
)
OF_SWEEPS: Mapping[str, tuple[Idle[SweepOptions], ...]] = {
    each.name: (_EXAMPLE,) for each in declared(SweepOptions) if each.name != "example"
}
_NO_REPLAYED_PAGE: Idle[ReplayOptions] = Idle(lambda replay: not replay.web.web, _NO_PAGE.text)
OF_REPLAYS: Mapping[str, tuple[Idle[ReplayOptions], ...]] = {
    "web_host": (_NO_REPLAYED_PAGE,),
    "web_port": (_NO_REPLAYED_PAGE,),
    "web_steer": (
        _NO_REPLAYED_PAGE,
        Idle(lambda replay: replay.read_only, "--read-only allows no control: leave out one of the two"),
    ),
}
_STORY: Idle[SummaryOptions] = Idle(
    lambda summary: summary.story or summary.markdown,
    "--story and --markdown print what limited the run, without its figures: leave out one of the two",
)
_NO_STORY: Idle[SummaryOptions] = Idle(lambda summary: not summary.story, "it is for the story of a watch: add --story")
OF_SUMMARIES: Mapping[str, tuple[Idle[SummaryOptions], ...]] = {
    "metric_percentiles": (_STORY,),
    "price": (_STORY,),
    "since": (_NO_STORY,),
    "until": (_NO_STORY,),
}
_NO_BASELINE: Idle[CheckOptions] = Idle(
    lambda check: not check.baseline, "it is for a comparison: leave it out, or give --baseline and --max-regression"
)
OF_CHECKS: Mapping[str, tuple[Idle[CheckOptions], ...]] = {"start_spread": (_NO_BASELINE,), "anyway": (_NO_BASELINE,)}
_OF_COMMANDS: Mapping[type[Any], Mapping[str, tuple[Idle[Any], ...]]] = {
    SweepOptions: OF_SWEEPS,
    ReplayOptions: OF_REPLAYS,
    SummaryOptions: OF_SUMMARIES,
    CheckOptions: OF_CHECKS,
}


def refuse_idle_options(given: GivenValues, options: object) -> None:
    """Raise UsageError for the first option of a command, as in `summary`, that another one leaves without an effect.

    `given` are the values of the command line, and `options` what they amount to. Those of a run depend on its
    configuration: see `refuse_idle_of_run`.
    """
    _refuse(given, options, declared_by=type(options), table=_OF_COMMANDS.get(type(options), {}))


def refuse_idle_of_run(given: GivenValues, choices: RunChoices) -> None:
    """Raise UsageError for the first option of a run that another choice leaves without an effect."""
    _refuse(given, choices, declared_by=RunOptions, table=OF_RUNS)


def _refuse(
    given: GivenValues, choices: object, *, declared_by: type[Any], table: Mapping[str, tuple[Idle[Any], ...]]
) -> None:
    for option in declared(declared_by) if table else ():
        if option.name not in given or option.name not in table:
            continue
        reason = next((each.text for each in table[option.name] if each.when(choices)), "")
        if reason and convert(option, given[option.name]) != option.default:
            raise UsageError(f"{option.spelling}: {reason}")


def _lower(names: Mapping[str, str]) -> set[str]:
    return {name.lower() for name in names}
