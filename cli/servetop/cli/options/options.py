"""The options, each declared once; units are seconds, requests per second and tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from servetop.cli.options import completions
from servetop.cli.options.config_file import use_config_file

ENGINE, LOAD, REQUESTS, OUTPUT = "Engine", "Load", "Requests", "Recording and output"

EngineName = Annotated[
    Optional[str],
    typer.Option(
        "--engine",
        help="Engine to start, or at --url. (default: sim; recognised with --url)",
        autocompletion=completions.engines,
        rich_help_panel=ENGINE,
    ),
]
Model = Annotated[
    Optional[str],
    typer.Option(
        "--model",
        help="Alias (llama-2-7b), hub name, or local path. (default: llama-2-7b)",
        autocompletion=completions.models,
        rich_help_panel=ENGINE,
    ),
]
MetricsUrl = Annotated[
    Optional[str],
    typer.Option(
        "--metrics-url",
        help="Where the engine's metrics are, or a Prometheus server that has them, as in "
        "'http://prom:9090/?match={instance=\"gpu7:8000\"}'. Default: the engine's own.",
        rich_help_panel=ENGINE,
    ),
]
Url = Annotated[
    Optional[list[str]],
    typer.Option(
        "--url",
        help="Attach to the server at this URL; repeat for its replicas, to which requests go in turn.",
        rich_help_panel=ENGINE,
    ),
]
FrontDoor = Annotated[
    Optional[str],
    typer.Option(
        "--front-door",
        help="Where requests go, as to a router; the --url are those behind it, whose metrics are read.",
        rich_help_panel=ENGINE,
    ),
]
Port = Annotated[
    Optional[int],
    typer.Option(
        "--port", min=1, max=65535, help="Port of a started engine. (default: a free one)", rich_help_panel=ENGINE
    ),
]
MaxNumSeqs = Annotated[
    Optional[int],
    typer.Option("--max-num-seqs", min=1, help="The engine's batch-size limit.", rich_help_panel=ENGINE),
]
EngineCommand = Annotated[
    Optional[str],
    typer.Option("--engine-command", help="Start the engine by this command instead.", rich_help_panel=ENGINE),
]
Launcher = Annotated[
    Optional[str],
    typer.Option("--launcher", help="docker or podman: start the engine in a container.", rich_help_panel=ENGINE),
]
Image = Annotated[
    Optional[str],
    typer.Option("--image", help="Its image. (default: the one that its makers publish)", rich_help_panel=ENGINE),
]
StartTimeout = Annotated[
    float,
    typer.Option("--start-timeout", min=1, help="Seconds that the engine may take to load.", rich_help_panel=ENGINE),
]
AttachTimeout = Annotated[
    float,
    typer.Option(
        "--attach-timeout", min=1, help="Seconds that a server at --url has to answer.", rich_help_panel=ENGINE
    ),
]
ApiKeyEnv = Annotated[
    Optional[str],
    typer.Option("--api-key-env", help="Environment variable that holds the API key.", rich_help_panel=ENGINE),
]

RequestRate = Annotated[
    Optional[str],
    typer.Option(
        "--request-rate", "--rate", "--qps", "--rps", help="Requests per second, or inf.", rich_help_panel=LOAD
    ),
]
Burstiness = Annotated[
    float,
    typer.Option("--burstiness", help="1 Poisson, below 1 burstier, inf evenly spaced.", rich_help_panel=LOAD),
]
MaxConcurrency = Annotated[
    Optional[int],
    typer.Option("--max-concurrency", min=1, help="Most requests in flight.", rich_help_panel=LOAD),
]
NumPrompts = Annotated[
    Optional[int],
    typer.Option("--num-prompts", min=1, help="Requests to send.", rich_help_panel=LOAD),
]
Duration = Annotated[
    Optional[str],
    typer.Option(
        "--duration",
        help="Seconds to send for (also 90s, 5m, 1h). (default: 60 s, where the load has no other end)",
        rich_help_panel=LOAD,
    ),
]
Ramp = Annotated[
    Optional[str],
    typer.Option(
        "--ramp",
        help="Stages: rate:duration, from-to:duration, rate@batch:duration; 8:30s,8-32:1m.",
        rich_help_panel=LOAD,
    ),
]
Workers = Annotated[
    str,
    typer.Option("--workers", help="Sender processes that share the load, or auto.", rich_help_panel=LOAD),
]
Seed = Annotated[int, typer.Option("--seed", help="Same seed, same requests at the same times.", rich_help_panel=LOAD)]

InputLen = Annotated[
    int,
    typer.Option("--random-input-len", "--input-len", min=1, help="Prompt tokens.", rich_help_panel=REQUESTS),
]
OutputLen = Annotated[
    int,
    typer.Option("--random-output-len", "--output-len", min=1, help="Output tokens.", rich_help_panel=REQUESTS),
]
IgnoreEos = Annotated[
    bool,
    typer.Option(
        "--ignore-eos/--no-ignore-eos", help="Always generate the full output length.", rich_help_panel=REQUESTS
    ),
]
Endpoint = Annotated[
    str,
    typer.Option(
        "--endpoint",
        help="completions, chat, responses, or generate: the engine's own. Default: the engine's usual one.",
        autocompletion=completions.endpoints,
        rich_help_panel=REQUESTS,
    ),
]
Temperature = Annotated[
    Optional[float],
    typer.Option(
        "--temperature", min=0, help="Sampling temperature. (default: the engine's)", rich_help_panel=REQUESTS
    ),
]
ExtraBody = Annotated[
    Optional[str],
    typer.Option(
        "--extra-body",
        help="JSON object merged into every request. Other users see it in ps: no secrets here.",
        rich_help_panel=REQUESTS,
    ),
]
Timeout = Annotated[
    float,
    typer.Option("--timeout", min=0.1, help="Seconds after which a request is given up.", rich_help_panel=REQUESTS),
]

Goodput = Annotated[
    Optional[list[str]],
    typer.Option(
        "--goodput", help="Objectives in ms, as in ttft:500 ttfot:800 tpot:50 e2el:5000.", rich_help_panel=OUTPUT
    ),
]
MetricPercentiles = Annotated[
    Optional[str],
    typer.Option(
        "--metric-percentiles",
        help="Percentiles of the summary, as in 50,90,95,99,99.9; 50, 90, 95 and 99 are always there.",
        rich_help_panel=OUTPUT,
    ),
]
Threshold = Annotated[
    Optional[list[str]],
    typer.Option(
        "--threshold",
        help="Condition on the summary, as in 'p99_ttft_ms<=500'; unmet: exit 99.",
        rich_help_panel=OUTPUT,
    ),
]
MAX_FAILURES = typer.Option(
    "--max-failures",
    metavar="COUNT|SHARE",
    help="Requests that may fail, as in 10, 2% or 0.02; more: exit 1.",
    rich_help_panel=OUTPUT,
)
Config = Annotated[
    Optional[Path],
    typer.Option(
        "--config",
        help="Take options from a TOML file, or repeat the run of a recording; options given here win.",
        autocompletion=completions.configs,
        rich_help_panel=OUTPUT,
        is_eager=True,
        callback=use_config_file,
    ),
]
Record = Annotated[
    Optional[Path],
    typer.Option(
        "--record", help="File to record to. (default: a new one in the recordings folder)", rich_help_panel=OUTPUT
    ),
]
NoRecord = Annotated[bool, typer.Option("--no-record", help="Keep no recording.", rich_help_panel=OUTPUT)]
StoreTexts = Annotated[
    bool,
    typer.Option("--store-texts", help="Record prompts (texts or token ids) and answers.", rich_help_panel=OUTPUT),
]
ThemeName = Annotated[
    str,
    typer.Option(
        "--theme",
        help="dark, light, contrast, ansi or mono. (default: the one chosen last, else by the terminal)",
        autocompletion=completions.themes,
        rich_help_panel=OUTPUT,
    ),
]
ReducedMotion = Annotated[
    bool,
    typer.Option("--reduced-motion", help="Redraw once a second; nothing blinks or glides.", rich_help_panel=OUTPUT),
]
Web = Annotated[
    bool,
    typer.Option("--web", help="The dashboard in a browser (needs servetop[web]).", rich_help_panel=OUTPUT),
]
WebHost = Annotated[
    str,
    typer.Option(
        "--web-host",
        help="Address that the page is served at; 0.0.0.0: all of this machine's. Not encrypted.",
        rich_help_panel=OUTPUT,
    ),
]
WebSteer = Annotated[
    bool,
    typer.Option(
        "--web-steer",
        help="Pages may steer the run, rename and delete recordings. (default: they only watch)",
        rich_help_panel=OUTPUT,
    ),
]
ReadOnly = Annotated[
    bool,
    typer.Option("--read-only", help="Only watch: steer no run, rename and delete no recording."),
]
WebPort = Annotated[int, typer.Option("--web-port", min=1, max=65535, help="Its port.", rich_help_panel=OUTPUT)]
Headless = Annotated[bool, typer.Option("--headless", help="No dashboard.", rich_help_panel=OUTPUT)]
Detach = Annotated[
    bool,
    typer.Option(
        "--detach", help="Start the run in the background and print how to find it again.", rich_help_panel=OUTPUT
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print the summary alone, as JSON (implies --headless).", rich_help_panel=OUTPUT),
]
Label = Annotated[str, typer.Option("--label", help="Name of the run.", rich_help_panel=OUTPUT)]
Metadata = Annotated[
    Optional[list[str]],
    typer.Option("--metadata", help="KEY=VALUE kept with the run; repeat.", rich_help_panel=OUTPUT),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on where an interrupted sweep stopped.", rich_help_panel=OUTPUT)
]
