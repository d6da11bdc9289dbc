"""`servetop search`: the largest load within objectives, from one continuous run."""

from __future__ import annotations

import contextlib
import dataclasses

from servetop.cli.configuration.configure import run_config
from servetop.cli.framework.command_line import CommandLine
from servetop.cli.launch import launch, output_of
from servetop.cli.options.declaration import declared
from servetop.cli.options.load_options import LoadOptions
from servetop.cli.options.output_options import DisplayOptions, OutputOptions, WebOptions
from servetop.cli.options.search_options import CHOSEN_LOADS, SearchedOptions, SearchOptions
from servetop.cli.search.simulated_engine import simulated_engine
from servetop.core.config import RunConfig
from servetop.core.config_values.search_config import MAX_CONCURRENCY, SearchConfig
from servetop.core.errors import ExitCode, UsageError
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.summary import run_summary
from servetop.run import console
from servetop.run.search.search_setup import check_loads, resumed_search, with_first_load

LOW_RATE, LOW_CONCURRENCY, HIGH = 0.1, 1.0, 1000.0


def run_search(line: CommandLine[SearchOptions]) -> int:
    """Search, or continue a search; returns the exit code."""
    if line.options.search.resume is not None:
        return _resume(line, line.options.search.resume)
    for option in declared(LoadOptions):
        if option.name in CHOSEN_LOADS and option.name in line.given:
            raise UsageError(f"{option.spelling}: the search chooses the load: leave it out, or give --low and --high")
    if "max_failures" in line.given:
        raise UsageError("--max-failures: failed requests are evidence of a search: use --slo 'error_rate<1%'")
    return launch(search_config(line), output_of(line.options.of_run, line))


def search_config(line: CommandLine[SearchOptions]) -> RunConfig:
    """Return the configuration of a new search, with its first load."""
    options, wanted = line.options, line.options.search
    search = SearchConfig(
        slo=wanted.slo,
        over=wanted.over,
        low=_least(wanted) if wanted.low is None else wanted.low,
        high=HIGH if wanted.high is None else wanted.high,
        budget=wanted.budget,
        precision=wanted.precision,
        prior=wanted.prior,
    )
    check_loads(search)
    if wanted.no_prior and wanted.prior is not None:
        raise UsageError("--prior and --no-prior exclude each other: leave out one of them")
    closed = search.concurrency
    load = dataclasses.replace(
        options.of_run.load,
        **({"max_concurrency": 1} if closed else {"request_rate": search.low}),
        duration=search.budget,
    )
    config = run_config(dataclasses.replace(options.of_run, load=load), line.invocation.engine_args)
    config = dataclasses.replace(config, search=search)
    if wanted.prior is None and not wanted.no_prior:
        config = _with_prediction(config, search)
    return with_first_load(config)


def _with_prediction(config: RunConfig, search: SearchConfig) -> RunConfig:
    """Return the configuration with the load that is predicted of its engine, if that is a simulator."""
    engine = simulated_engine(config.engine)
    if engine is None:
        return config
    from servetop.run.search.predicted_load import predicted_load

    return dataclasses.replace(config, search=dataclasses.replace(search, prior=predicted_load(config, engine)))


def _least(wanted: SearchedOptions) -> float:
    return LOW_CONCURRENCY if wanted.over == MAX_CONCURRENCY else LOW_RATE


_BESIDE_RESUME = {each.name for kind in (OutputOptions, DisplayOptions, WebOptions) for each in declared(kind)}


def _resume(line: CommandLine[SearchOptions], name: str) -> int:
    other = [each for each in declared(SearchOptions) if each.name in line.given and each.name not in _BESIDE_RESUME]
    if not_resume := [each.spelling for each in other if each.name != "resume"]:
        raise UsageError(f"{not_resume[0]}: --resume takes everything from the recording: leave out one of the two")
    if line.options.of_run.output.record is not None:
        raise UsageError("--record: --resume continues the recording that it names: leave out one of the two")
    recording = resolve(name)
    config = resumed_search(recording)
    as_json = line.options.of_run.output.as_json
    if all(stage.warmup for stage in config.stages):
        console.message(f"the search in {recording} is over: nothing to resume")
        return _print_over(str(recording), as_json=as_json)
    return launch(config, output_of(line.options.of_run, line), resume=recording)


def _print_over(name: str, *, as_json: bool) -> int:
    from servetop.cli.report.search_lines import print_search

    with contextlib.closing(RecordingReader.open(resolve(name))) as reader:
        print_search(reader, run_summary(reader), as_json=as_json)
        return int(ExitCode.OK) if reader.end is None else reader.end.exit_code
