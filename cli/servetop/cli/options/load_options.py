"""The options of `servetop` that set the stages of a run and when their requests are due."""

from functools import partial
from typing import Annotated

from servetop.cli.options.declaration import Option, options_class
from servetop.cli.options.parsers import parse_seconds_or_none, parse_workers
from servetop.core.units import parse_rate, parse_seconds

load_option = partial(Option, panel="Load")
RATE = "REQUESTS/S"

NumPrompts = Annotated[
    int | None,
    load_option(
        "--num-prompts", "Number of requests to send.", brief="Number of requests to send.", unit="REQUESTS", minimum=1
    ),
]


@options_class
class LoadOptions:
    """How many requests, when, and from how many processes."""

    request_rate: Annotated[
        float | None,
        load_option(
            "--request-rate --rate --qps --rps",
            "Request rate: requests per second (QPS, RPS), or inf.",
            brief="Requests per second, or inf.",
            unit=RATE,
            parse=parse_rate,
        ),
    ] = None
    burstiness: Annotated[
        float, load_option("--burstiness", "1 for Poisson arrivals, below 1 burstier, inf evenly spaced.")
    ] = 1.0
    max_concurrency: Annotated[
        int | None,
        load_option(
            "--max-concurrency",
            "Maximum number of requests in flight (users, VUs).",
            brief="At most this many in flight.",
            unit="REQUESTS",
            minimum=1,
        ),
    ] = None
    num_prompts: NumPrompts = None
    duration: Annotated[
        float | None,
        load_option(
            "--duration",
            "How long to send requests: seconds, or 90s, 5m, 1h.",
            brief="How long to send: 90s, 5m, 1h.",
            unit="TIME",
            default="60 s, unless the load ends otherwise",
            parse=parse_seconds,
        ),
    ] = None
    ramp: Annotated[
        str | None,
        load_option(
            "--ramp",
            "Stages of the request rate (QPS, RPS), each as rate:duration, from-to:duration or rate@batch:duration; "
            "8:30s,8-32:1m.",
            brief="Rates in turn: 8:30s,8-32:1m.",
            unit="STAGES",
        ),
    ] = None
    arrivals: Annotated[
        str,
        load_option(
            "--arrivals",
            "Arrival process: gamma, poisson, constant, burst, spaced, sinusoid:period=60,amplitude=0.5, diurnal, "
            "trace, all-at-once.",
            unit="PROCESS",
            default="gamma; a trace's own times",
        ),
    ] = ""
    think_time: Annotated[
        str,
        load_option(
            "--think-time", "Pause of each user before the next request: 2, 500ms, exponential:mean=2.", unit="TIME"
        ),
    ] = ""
    ramp_up_strategy: Annotated[
        str | None,
        load_option("--ramp-up-strategy", "How the rate changes over the stage.", choices=("linear", "exponential")),
    ] = None
    ramp_up_start_rps: Annotated[
        float | None,
        load_option("--ramp-up-start-rps", "Rate at the beginning of the stage.", unit=RATE, parse=parse_rate),
    ] = None
    ramp_up_end_rps: Annotated[
        float | None, load_option("--ramp-up-end-rps", "Rate at the end of the stage.", unit=RATE, parse=parse_rate)
    ] = None
    num_warmups: Annotated[
        int,
        load_option(
            "--num-warmups",
            "Requests sent first, in a warm-up stage that is excluded from all totals.",
            unit="REQUESTS",
            minimum=0,
        ),
    ] = 0
    cooldown: Annotated[
        float,
        load_option(
            "--cooldown",
            "Exclude requests due in the last SECONDS of each stage from all totals.",
            unit="SECONDS",
            parse=parse_seconds_or_none,
        ),
    ] = 0.0
    drain_timeout: Annotated[
        float,
        load_option(
            "--drain-timeout",
            "Wait this long at the end for requests in flight, then cancel them; 0 cancels them at once.",
            unit="SECONDS",
            parse=parse_seconds_or_none,
        ),
    ] = 120.0
    prefix_cache: Annotated[
        str | None,
        load_option(
            "--prefix-cache",
            "The engine's prefix cache when the load, or a cell of a sweep, begins: as-is, cold (empty), warm (the "
            "shared prefixes and nothing else).",
            choices=("as-is", "cold", "warm"),
            default="as-is; warm with --cache-hit-rate",
        ),
    ] = None
    time_scale: Annotated[
        float, load_option("--time-scale", "Stretch trace timestamps by this factor (0.1 = 10× faster).", unit="FACTOR")
    ] = 1.0
    jitter: Annotated[
        float | None,
        load_option(
            "--jitter",
            "Shift each arrival of a trace at random, by up to this time.",
            unit="SECONDS",
            default="the resolution of the trace's timestamps",
        ),
    ] = None
    workers: Annotated[
        int, load_option("--workers", "Number of sender processes, or auto.", unit="PROCESSES", parse=parse_workers)
    ] = 1
    seed: Annotated[int, load_option("--seed", "The same seed sends the same requests at the same times.")] = 0
