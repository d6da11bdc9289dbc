"""The options of `servetop search`: those of a run, and what to search for."""

import dataclasses
from functools import partial
from typing import Annotated

from servetop.cli.options import completions
from servetop.cli.options.declaration import Option, options_class
from servetop.cli.options.parsers import parse_fraction
from servetop.cli.options.run_options import RepeatableOptions
from servetop.core.config_values.search_config import SEARCHED_LOADS
from servetop.core.units import parse_seconds

search_option = partial(Option, panel="Search")
CHOSEN_LOADS = frozenset(
    {
        "request_rate",
        "max_concurrency",
        "num_prompts",
        "duration",
        "ramp",
        "ramp_up_strategy",
        "ramp_up_start_rps",
        "ramp_up_end_rps",
        "cooldown",
    }
)
"""Options of a load that a search chooses itself."""
REFUSED = CHOSEN_LOADS | {"max_failures"}
"""Options of a run that a search refuses: failed requests are evidence."""


@options_class
class SearchedOptions:
    """The objectives, the loads to try, and the time for the search."""

    slo: Annotated[
        tuple[str, ...],
        search_option(
            "--slo",
            "Objectives to keep together, as in 'p99_ttft<500ms, mean_itl<50ms'; repeat for another answer.",
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
    prior: Annotated[
        float | None,
        search_option(
            "--prior",
            "Load near which the answer is expected: the search begins at half of it.",
            unit="LOAD",
            default="what the simulator predicts of itself, else --low",
        ),
    ] = None
    no_prior: Annotated[bool, search_option("--no-prior", "Begin at --low, without a prediction.")] = False
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
    """The options of `servetop search`: its own, then those of a run."""

    search: SearchedOptions = SearchedOptions()
    of_run: RepeatableOptions = dataclasses.field(default_factory=RepeatableOptions)
