"""The options of `servetop` that set the stages of a run and when their requests are due."""

from typing import Annotated

from servetop.cli.options.declaration import Option, options_class
from servetop.cli.options.parsers import parse_cooldown, parse_workers
from servetop.core.units import parse_rate, parse_seconds

LOAD = "Load"
RATE = "REQUESTS/S"

NumPrompts = Annotated[
    int | None, Option("--num-prompts", "Number of requests to send.", panel=LOAD, unit="REQUESTS", minimum=1)
]


@options_class
class LoadOptions:
    """How many requests, when, and from how many processes."""

    request_rate: Annotated[
        float | None,
        Option(
            "--request-rate --rate --qps --rps",
            "Requests per second, or inf.",
            panel=LOAD,
            unit=RATE,
            parse=parse_rate,
        ),
    ] = None
    burstiness: Annotated[
        float,
        Option("--burstiness", "1 for Poisson arrivals, below 1 burstier, inf evenly spaced.", panel=LOAD),
    ] = 1.0
    max_concurrency: Annotated[
        int | None,
        Option("--max-concurrency", "Maximum number of requests in flight.", panel=LOAD, unit="REQUESTS", minimum=1),
    ] = None
    num_prompts: NumPrompts = None
    duration: Annotated[
        float | None,
        Option(
            "--duration",
            "How long to send requests: seconds, or 90s, 5m, 1h.",
            panel=LOAD,
            unit="TIME",
            default="60 s, unless the load ends otherwise",
            parse=parse_seconds,
        ),
    ] = None
    ramp: Annotated[
        str | None,
        Option(
            "--ramp",
            "Stages, each as rate:duration, from-to:duration or rate@batch:duration; 8:30s,8-32:1m.",
            panel=LOAD,
            unit="STAGES",
        ),
    ] = None
    arrivals: Annotated[
        str,
        Option(
            "--arrivals",
            "Arrival process: gamma, poisson, constant, burst, spaced, sinusoid:period=60,amplitude=0.5, diurnal, "
            "trace, all-at-once.",
            panel=LOAD,
            unit="PROCESS",
            default="gamma; a trace's own times",
        ),
    ] = ""
    think_time: Annotated[
        str,
        Option(
            "--think-time",
            "Pause of each user before the next request: 2, 500ms, exponential:mean=2.",
            panel=LOAD,
            unit="TIME",
        ),
    ] = ""
    ramp_up_strategy: Annotated[
        str | None,
        Option(
            "--ramp-up-strategy",
            "How the rate changes over the stage.",
            panel=LOAD,
            choices=("linear", "exponential"),
        ),
    ] = None
    ramp_up_start_rps: Annotated[
        float | None,
        Option("--ramp-up-start-rps", "Rate at the beginning of the stage.", panel=LOAD, unit=RATE, parse=parse_rate),
    ] = None
    ramp_up_end_rps: Annotated[
        float | None,
        Option("--ramp-up-end-rps", "Rate at the end of the stage.", panel=LOAD, unit=RATE, parse=parse_rate),
    ] = None
    num_warmups: Annotated[
        int,
        Option(
            "--num-warmups",
            "Requests sent first, in a warm-up stage that is excluded from all totals.",
            panel=LOAD,
            unit="REQUESTS",
            minimum=0,
        ),
    ] = 0
    cooldown: Annotated[
        float,
        Option(
            "--cooldown",
            "Exclude requests due in the last SECONDS of each stage from all totals.",
            panel=LOAD,
            unit="SECONDS",
            parse=parse_cooldown,
        ),
    ] = 0.0
    time_scale: Annotated[
        float,
        Option(
            "--time-scale", "Stretch trace timestamps by this factor (0.1 = 10× faster).", panel=LOAD, unit="FACTOR"
        ),
    ] = 1.0
    jitter: Annotated[
        float | None,
        Option(
            "--jitter",
            "Shift each arrival of a trace at random, by up to this time.",
            panel=LOAD,
            unit="SECONDS",
            default="the resolution of the trace's timestamps",
        ),
    ] = None
    workers: Annotated[
        int,
        Option("--workers", "Number of sender processes, or auto.", panel=LOAD, unit="PROCESSES", parse=parse_workers),
    ] = 1
    seed: Annotated[int, Option("--seed", "The same seed sends the same requests at the same times.", panel=LOAD)] = 0
