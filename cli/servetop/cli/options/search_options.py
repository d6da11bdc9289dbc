"""The options of `servetop search`: those of a run, and what to search for."""

import dataclasses
from functools import partial
from typing import Annotated

from servetop.cli.options import completions
from servetop.cli.options.declaration import Option, options_class
from servetop.cli.options.engine_options import ConnectionOptions, EngineOptions
from servetop.cli.options.load_options import LoadOptions
from servetop.cli.options.output_options import OutputOptions, ResultOptions, WebOptions
from servetop.cli.options.parsers import parse_fraction
from servetop.cli.options.request_options import DataOptions, RequestOptions
from servetop.cli.options.run_options import NoRecord, RepeatableOptions
from servetop.core.config_values.search_config import SEARCHED_LOADS
from servetop.core.units import parse_seconds

search_option = partial(Option, panel="Search")


@options_class
class SearchedOptions:
    """What to search for, and for how long."""

    slo: Annotated[
        tuple[str, ...],
        search_option(
            "--slo",
            "Objectives to keep together, as in 'p99_ttft<500ms, p99_itl<50ms'; repeat for another answer.",
            brief="Objectives: 'p99_ttft<500ms'; repeat.",
            unit="OBJECTIVES",
        ),
    ] = ()
    over: Annotated[
        str, search_option("--over", "The load to vary.", brief="The load to vary.", choices=SEARCHED_LOADS)
    ] = "request_rate"
    low: Annotated[
        float | None,
        search_option("--low", "Least load to try.", unit="LOAD", default="0.1 requests/s, 1 request in flight"),
    ] = None
    high: Annotated[float | None, search_option("--high", "Largest load to try.", unit="LOAD", default="1000")] = None
    budget: Annotated[
        float,
        search_option(
            "--budget",
            "Time of load, without the start of the engine: seconds, or 20m, 2h.",
            brief="Time of load: 20m, 2h.",
            unit="TIME",
            default="20m",
            parse=parse_seconds,
        ),
    ] = 1200.0
    precision: Annotated[
        float,
        search_option(
            "--precision",
            "End the search when its interval reaches no farther than this to either side of the answer.",
            unit="SHARE",
            default="5%",
            parse=parse_fraction,
        ),
    ] = 0.05
    resume: Annotated[
        str | None,
        search_option(
            "--resume",
            "Continue the search of this recording; it has all options.",
            brief="Continue the search of a recording.",
            unit="FILE|latest",
            complete=completions.recordings,
        ),
    ] = None


@options_class
class SearchOptions:
    """The options of `servetop search`: those of RepeatableOptions follow its own."""

    search: SearchedOptions = SearchedOptions()
    engine: EngineOptions = EngineOptions()
    connection: ConnectionOptions = ConnectionOptions()
    load: LoadOptions = LoadOptions()
    data: DataOptions = DataOptions()
    requests: RequestOptions = dataclasses.field(default_factory=RequestOptions)
    results: ResultOptions = dataclasses.field(default_factory=ResultOptions)
    output: OutputOptions = OutputOptions()
    no_record: NoRecord = False
    web: WebOptions = WebOptions()

    @property
    def of_run(self) -> RepeatableOptions:
        """The options of the run."""
        return RepeatableOptions(
            **{each.name: getattr(self, each.name) for each in dataclasses.fields(RepeatableOptions)}
        )
