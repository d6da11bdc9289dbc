"""The options that say what is asked and when, besides the common ones of `options`."""

from __future__ import annotations

from typing import Annotated

import typer

from servetop.cli.options import completions
from servetop.cli.options.options import LOAD, REQUESTS

DATA = "Data"

Arrivals = Annotated[
    str | None,
    typer.Option(
        "--arrivals",
        help="gamma, poisson, constant, burst, spaced, sinusoid:period=60,amplitude=0.5, diurnal, trace, all-at-once.",
        rich_help_panel=LOAD,
    ),
]
ThinkTime = Annotated[
    str | None,
    typer.Option(
        "--think-time",
        help="Pause of each user before the next question: 2, 500ms, exponential:mean=2.",
        rich_help_panel=LOAD,
    ),
]
RampUpStrategy = Annotated[
    str | None,
    typer.Option("--ramp-up-strategy", help="linear or exponential, over the stage.", rich_help_panel=LOAD),
]
RampUpStart = Annotated[
    str | None,
    typer.Option("--ramp-up-start-rps", help="Requests per second at the beginning.", rich_help_panel=LOAD),
]
RampUpEnd = Annotated[
    str | None,
    typer.Option("--ramp-up-end-rps", help="Requests per second at the end.", rich_help_panel=LOAD),
]
NumWarmups = Annotated[
    int,
    typer.Option(
        "--num-warmups", min=0, help="Requests sent first, in a stage that counts in no total.", rich_help_panel=LOAD
    ),
]
CoolDown = Annotated[
    str | None,
    typer.Option("--cooldown", help="Last part of each stage that counts in no total: 5, 5s.", rich_help_panel=LOAD),
]
TimeScale = Annotated[
    float,
    typer.Option(
        "--time-scale", help="A trace takes so many times as long; 0.1 is ten times faster.", rich_help_panel=LOAD
    ),
]
Jitter = Annotated[
    float | None,
    typer.Option(
        "--jitter", help="Spread a trace's arrivals over so many seconds. (default: its grid)", rich_help_panel=LOAD
    ),
]

DatasetName = Annotated[
    str,
    typer.Option(
        "--dataset-name",
        help="random, prefix_repetition, sonnet, shakespeare, sharegpt, mtbench, conversations, custom (JSON lines), "
        "csv, parquet, hf, "
        "azure-conv, azure-code, trace, burstgpt, vidur, mooncake, timed_trace.",
        autocompletion=completions.datasets,
        rich_help_panel=DATA,
    ),
]
DatasetPath = Annotated[
    str, typer.Option("--dataset-path", help="File or folder of the dataset.", rich_help_panel=DATA)
]
DatasetColumn = Annotated[
    str, typer.Option("--dataset-column", help="Column with the prompts. (default: prompt)", rich_help_panel=DATA)
]
NumTurns = Annotated[
    str | None,
    typer.Option(
        "--num-turns",
        help="Ask in conversations of so many turns: 3, uniform:min=2,max=6; of a dataset at most so many.",
        rich_help_panel=DATA,
    ),
]
Lengths = Annotated[
    str | None,
    typer.Option(
        "--lengths",
        help="fixed, uniform, normal, lognormal, capped-exponential, zipf, sharegpt; with numbers, as in "
        "lognormal:output_mean=200,output_sigma=1.",
        rich_help_panel=DATA,
    ),
]
RangeRatio = Annotated[
    float,
    typer.Option("--random-range-ratio", help="Uniform lengths within ± this share.", rich_help_panel=DATA),
]
PrefixLen = Annotated[
    int, typer.Option("--random-prefix-len", help="Tokens of a prefix that prompts share.", rich_help_panel=DATA)
]
NumPrefixes = Annotated[
    int, typer.Option("--num-prefixes", help="Size of the pool that prefixes come from.", rich_help_panel=DATA)
]
ExactLengths = Annotated[
    bool,
    typer.Option(
        "--exact-lengths", help="Cut texts by the engine's own /tokenize, or by --tokenizer.", rich_help_panel=DATA
    ),
]
TokenizerFile = Annotated[
    str,
    typer.Option(
        "--tokenizer", help="tokenizer.json, tiktoken or SentencePiece file that counts tokens.", rich_help_panel=DATA
    ),
]
SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Leave out malformed rows and count them.", rich_help_panel=DATA)
]
ClipLengths = Annotated[
    bool, typer.Option("--clip-lengths", help="Shorten what the model cannot take, and count it.", rich_help_panel=DATA)
]

Header = Annotated[
    list[str] | None,
    typer.Option(
        "--header",
        help="NAME:VALUE sent with every request; repeat. Other users see it in ps: for secrets, --header-env.",
        rich_help_panel=REQUESTS,
    ),
]
HeaderEnv = Annotated[
    list[str] | None,
    typer.Option(
        "--header-env",
        help="NAME=VAR: header whose value is in environment variable VAR; repeat.",
        rich_help_panel=REQUESTS,
    ),
]
ModelMix = Annotated[
    str | None,
    typer.Option(
        "--model-mix",
        "--lora-modules",
        help="Served models or LoRA adapters by weight: base=3,adapter-a=1, or names alone.",
        rich_help_panel=REQUESTS,
    ),
]
Stream = Annotated[
    bool, typer.Option("--stream/--no-stream", help="Ask for streamed answers.", rich_help_panel=REQUESTS)
]
Answers = Annotated[int, typer.Option("--n", help="Answers to each prompt.", rich_help_panel=REQUESTS)]
CancelFraction = Annotated[
    float,
    typer.Option("--cancel-fraction", help="Share of requests broken off in mid-answer.", rich_help_panel=REQUESTS),
]
