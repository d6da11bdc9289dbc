"""The options of `servetop` that set the content of requests: dataset, lengths and request bodies."""

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from servetop.cli.options import completions
from servetop.cli.options.declaration import Option, options_class
from servetop.cli.options.parsers import parse_extra_body, parse_header_env, parse_headers, parse_model_mix

data_option, request_option = partial(Option, panel="Data"), partial(Option, panel="Requests")
EndpointName = Annotated[
    str,
    request_option(
        "--endpoint",
        "completions, chat, responses, or generate (the engine's own API).",
        unit="NAME",
        default="the engine's usual one",
        complete=completions.endpoints,
    ),
]
ExtraBody = Annotated[
    Mapping[str, Any],
    request_option(
        "--extra-body",
        "JSON object merged into each request; null removes a field. Visible to others in ps: no secrets here.",
        unit="JSON",
        parse=parse_extra_body,
    ),
]
Headers = Annotated[
    Mapping[str, str],
    request_option(
        "--header",
        "Header of every request; repeat. Visible to other users in ps: use --header-env for secrets.",
        unit="NAME:VALUE",
        repeat=True,
        parse=parse_headers,
    ),
]
HeaderEnv = Annotated[
    Mapping[str, str],
    request_option(
        "--header-env",
        "Header whose value is read from an environment variable; repeat.",
        unit="NAME=VARIABLE",
        repeat=True,
        parse=parse_header_env,
    ),
]


@options_class
class PromptOptions:
    """Where prompts and lengths come from."""

    dataset_name: Annotated[
        str,
        data_option(
            "--dataset-name",
            "random, prefix_repetition, sonnet, shakespeare, sharegpt, mtbench, conversations, custom (JSON, CSV), "
            "csv, parquet, hf, azure-conv, azure-code, trace, azure, burstgpt, vidur, plain, mooncake, timed_trace.",
            unit="NAME",
            complete=completions.datasets,
            of_plug_ins="servetop.datasets",
        ),
    ] = "random"
    dataset_path: Annotated[str, data_option("--dataset-path", "File or folder of the dataset.", unit="PATH")] = ""
    dataset_column: Annotated[
        str, data_option("--dataset-column", "Column with the prompts.", unit="COLUMN", default="prompt")
    ] = ""
    num_turns: Annotated[
        str,
        data_option(
            "--num-turns",
            "Number of turns of each conversation: 3, uniform:min=2,max=6; a maximum for conversations of a dataset.",
            unit="TURNS",
        ),
    ] = ""
    lengths: Annotated[
        str,
        data_option(
            "--lengths",
            "Length distribution: fixed, uniform, normal, lognormal, capped-exponential, zipf, sharegpt; with "
            "parameters, as in lognormal:output_mean=200,output_sigma=1.",
            unit="DISTRIBUTION",
            default="the dataset's, else fixed",
        ),
    ] = ""
    range_ratio: Annotated[
        float, data_option("--random-range-ratio", "Draw lengths uniformly within ± this fraction.", unit="FRACTION")
    ] = 0.0
    prefix_len: Annotated[
        int, data_option("--random-prefix-len", "Length of a shared prefix of the prompts.", unit="TOKENS")
    ] = 0
    num_prefixes: Annotated[int, data_option("--num-prefixes", "Number of different prefixes.", unit="PREFIXES")] = 1
    cache_hit_rate: Annotated[
        float | None,
        data_option(
            "--cache-hit-rate",
            "Fraction of the prompt tokens that a warm prefix cache holds: whole blocks of shared prefixes.",
            unit="FRACTION",
        ),
    ] = None
    skip_bad_rows: Annotated[
        bool, data_option("--skip-bad-rows", "Skip malformed rows of the dataset and count them.")
    ] = False


@options_class
class DataOptions(PromptOptions):
    """Where prompts and lengths come from, and how their tokens are counted."""

    exact_lengths: Annotated[
        bool, data_option("--exact-lengths", "Cut texts with the engine's /tokenize, or with --tokenizer.")
    ] = False
    tokenizer: Annotated[
        str,
        data_option("--tokenizer", "tokenizer.json, tiktoken or SentencePiece file to count tokens with.", unit="FILE"),
    ] = ""
    clip_lengths: Annotated[
        bool, data_option("--clip-lengths", "Truncate requests to the model's context length, and count them.")
    ] = False


@options_class
class RequestOptions:
    """What each request contains."""

    input_len: Annotated[
        int,
        request_option(
            "--random-input-len --input-len", "Prompt length.", brief="Prompt length.", unit="TOKENS", minimum=1
        ),
    ] = 128
    output_len: Annotated[
        int,
        request_option(
            "--random-output-len --output-len", "Output length.", brief="Output length.", unit="TOKENS", minimum=1
        ),
    ] = 128
    ignore_eos: Annotated[
        bool, request_option("--ignore-eos/--no-ignore-eos", "Always generate the full output length.")
    ] = True
    endpoint: EndpointName = ""
    temperature: Annotated[
        float | None, request_option("--temperature", "Sampling temperature.", default="the engine's", minimum=0)
    ] = None
    extra_body: ExtraBody = dataclasses.field(default_factory=dict)
    header: Headers = dataclasses.field(default_factory=dict)
    header_env: HeaderEnv = dataclasses.field(default_factory=dict)
    stream: Annotated[bool, request_option("--stream/--no-stream", "Request streaming responses.")] = True
    n: Annotated[int, request_option("--n", "Completions for each prompt.", unit="COMPLETIONS")] = 1
    model_mix: Annotated[
        Mapping[str, float],
        request_option(
            "--model-mix --lora-modules",
            "Served models or LoRA adapters, with weights: base=3,adapter-a=1, or names only.",
            unit="MODELS",
            parse=parse_model_mix,
        ),
    ] = dataclasses.field(default_factory=dict)
    cancel_fraction: Annotated[
        float, request_option("--cancel-fraction", "Cancel this fraction of requests mid-stream.", unit="FRACTION")
    ] = 0.0
    timeout: Annotated[float, request_option("--timeout", "Time limit of a request.", unit="SECONDS", minimum=0.1)] = (
        600.0
    )
