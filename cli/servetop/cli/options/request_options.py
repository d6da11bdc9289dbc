"""The options of `servetop` that set the content of requests: dataset, lengths and request bodies."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any

from servetop.cli.options import completions
from servetop.cli.options.declaration import Option, options_class
from servetop.cli.options.parsers import parse_extra_body, parse_header_env, parse_headers, parse_model_mix

DATA, REQUESTS = "Data", "Requests"


@options_class
class DataOptions:
    """Where prompts and lengths come from."""

    dataset_name: Annotated[
        str,
        Option(
            "--dataset-name",
            "random, prefix_repetition, sonnet, shakespeare, sharegpt, mtbench, conversations, custom (JSON lines), "
            "csv, parquet, hf, azure-conv, azure-code, trace, burstgpt, vidur, mooncake, timed_trace.",
            panel=DATA,
            unit="NAME",
            complete=completions.datasets,
        ),
    ] = "random"
    dataset_path: Annotated[
        str, Option("--dataset-path", "File or folder of the dataset.", panel=DATA, unit="PATH")
    ] = ""
    dataset_column: Annotated[
        str, Option("--dataset-column", "Column with the prompts.", panel=DATA, unit="COLUMN", default="prompt")
    ] = ""
    num_turns: Annotated[
        str,
        Option(
            "--num-turns",
            "Number of turns of each conversation: 3, uniform:min=2,max=6; a maximum for conversations of a dataset.",
            panel=DATA,
            unit="TURNS",
        ),
    ] = ""
    lengths: Annotated[
        str,
        Option(
            "--lengths",
            "Length distribution: fixed, uniform, normal, lognormal, capped-exponential, zipf, sharegpt; with "
            "parameters, as in lognormal:output_mean=200,output_sigma=1.",
            panel=DATA,
            unit="DISTRIBUTION",
            default="the dataset's, else fixed",
        ),
    ] = ""
    range_ratio: Annotated[
        float,
        Option("--random-range-ratio", "Draw lengths uniformly within ± this fraction.", panel=DATA, unit="FRACTION"),
    ] = 0.0
    prefix_len: Annotated[
        int, Option("--random-prefix-len", "Length of a shared prefix of the prompts.", panel=DATA, unit="TOKENS")
    ] = 0
    num_prefixes: Annotated[
        int, Option("--num-prefixes", "Number of different prefixes.", panel=DATA, unit="PREFIXES")
    ] = 1
    exact_lengths: Annotated[
        bool,
        Option("--exact-lengths", "Cut texts with the engine's /tokenize, or with --tokenizer.", panel=DATA),
    ] = False
    tokenizer: Annotated[
        str,
        Option(
            "--tokenizer",
            "tokenizer.json, tiktoken or SentencePiece file to count tokens with.",
            panel=DATA,
            unit="FILE",
        ),
    ] = ""
    skip_bad_rows: Annotated[
        bool, Option("--skip-bad-rows", "Skip malformed rows of the dataset and count them.", panel=DATA)
    ] = False
    clip_lengths: Annotated[
        bool,
        Option("--clip-lengths", "Shorten requests that exceed the model's context, and count them.", panel=DATA),
    ] = False


@options_class
class RequestOptions:
    """What each request contains."""

    input_len: Annotated[
        int,
        Option("--random-input-len --input-len", "Prompt length.", panel=REQUESTS, unit="TOKENS", minimum=1),
    ] = 128
    output_len: Annotated[
        int,
        Option("--random-output-len --output-len", "Output length.", panel=REQUESTS, unit="TOKENS", minimum=1),
    ] = 128
    ignore_eos: Annotated[
        bool,
        Option("--ignore-eos/--no-ignore-eos", "Always generate the full output length.", panel=REQUESTS),
    ] = True
    endpoint: Annotated[
        str,
        Option(
            "--endpoint",
            "completions, chat, responses, or generate (the engine's own API).",
            panel=REQUESTS,
            unit="NAME",
            default="the engine's usual one",
            complete=completions.endpoints,
        ),
    ] = ""
    temperature: Annotated[
        float | None,
        Option("--temperature", "Sampling temperature.", panel=REQUESTS, default="the engine's", minimum=0),
    ] = None
    extra_body: Annotated[
        Mapping[str, Any],
        Option(
            "--extra-body",
            "JSON object merged into every request. Visible to other users in ps: do not put secrets here.",
            panel=REQUESTS,
            unit="JSON",
            parse=parse_extra_body,
        ),
    ] = dataclasses.field(default_factory=dict)
    header: Annotated[
        Mapping[str, str],
        Option(
            "--header",
            "Header of every request; repeat. Visible to other users in ps: use --header-env for secrets.",
            panel=REQUESTS,
            unit="NAME:VALUE",
            repeat=True,
            parse=parse_headers,
        ),
    ] = dataclasses.field(default_factory=dict)
    header_env: Annotated[
        Mapping[str, str],
        Option(
            "--header-env",
            "Header whose value is read from an environment variable; repeat.",
            panel=REQUESTS,
            unit="NAME=VARIABLE",
            repeat=True,
            parse=parse_header_env,
        ),
    ] = dataclasses.field(default_factory=dict)
    stream: Annotated[bool, Option("--stream/--no-stream", "Request streaming responses.", panel=REQUESTS)] = True
    n: Annotated[int, Option("--n", "Completions for each prompt.", panel=REQUESTS, unit="COMPLETIONS")] = 1
    model_mix: Annotated[
        Mapping[str, float],
        Option(
            "--model-mix --lora-modules",
            "Served models or LoRA adapters, with weights: base=3,adapter-a=1, or names only.",
            panel=REQUESTS,
            unit="MODELS",
            parse=parse_model_mix,
        ),
    ] = dataclasses.field(default_factory=dict)
    cancel_fraction: Annotated[
        float,
        Option("--cancel-fraction", "Cancel this fraction of requests mid-stream.", panel=REQUESTS, unit="FRACTION"),
    ] = 0.0
    timeout: Annotated[
        float,
        Option("--timeout", "Time limit of a request.", panel=REQUESTS, unit="SECONDS", minimum=0.1),
    ] = 600.0
