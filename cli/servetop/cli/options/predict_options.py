"""The options of `servetop predict`."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from servetop.cli.options import completions
from servetop.cli.options.declaration import Option, options_class
from servetop.cli.options.engine_options import Model, engine_option
from servetop.cli.options.load_options import NumPrompts, load_option
from servetop.cli.options.output_options import AsJson
from servetop.cli.options.parsers import parse_batch_sizes, parse_goodput, parse_rates, parse_settings
from servetop.cli.options.request_options import PromptOptions, request_option
from servetop.cli.options.run_options import SWEEP


@options_class
class GridOptions:
    """The cells that `servetop predict` simulates, in place of a preset."""

    model: Model = None
    gpu: Annotated[
        str | None,
        engine_option(
            "--gpu",
            "GPU profile, as in a100-40.",
            brief="GPU profile, as in a100-40.",
            unit="NAME",
            complete=completions.gpus,
        ),
    ] = None
    engine_profile: Annotated[
        str | None,
        engine_option(
            "--engine-profile",
            "Engine profile, as in vllm-0.2.1.",
            brief="Engine profile, as in vllm-0.2.1.",
            unit="NAME",
            complete=completions.engine_profiles,
        ),
    ] = None
    max_num_seqs: Annotated[
        tuple[int, ...],
        engine_option(
            "--max-num-seqs",
            "Batch sizes, as in 64,128.",
            brief="Batch sizes, as in 64,128.",
            unit="LIST",
            parse=parse_batch_sizes,
        ),
    ] = ()
    request_rate: Annotated[
        tuple[float, ...],
        load_option(
            "--request-rate --rate --qps --rps",
            "Request rates: requests per second (QPS, RPS), as in 32,64 or inf.",
            brief="Requests per second, as in 32,64 or inf.",
            unit="LIST",
            parse=parse_rates,
        ),
    ] = ()
    num_prompts: NumPrompts = None
    arrivals: Annotated[
        str | None, load_option("--arrivals", "burst, spaced, constant, poisson or all-at-once.", unit="PROCESS")
    ] = None
    input_len: Annotated[
        int | None,
        request_option(
            "--input-len --random-input-len", "Prompt length.", brief="Prompt length.", unit="TOKENS", minimum=1
        ),
    ] = None
    output_len: Annotated[
        int | None,
        request_option(
            "--output-len --random-output-len", "Output length.", brief="Output length.", unit="TOKENS", minimum=1
        ),
    ] = None


@options_class
class PredictOptions:
    """The options of `servetop predict`."""

    file: Annotated[str | None, SWEEP] = None
    grid: GridOptions = GridOptions()
    prompts: PromptOptions = PromptOptions()
    preset: Annotated[
        str | None,
        Option("--preset", "Sweep file or preset, as an option.", unit="NAME", complete=completions.sweeps),
    ] = None
    settings: Annotated[
        dict[str, str] | None,
        Option(
            "--set",
            "Setting of the model; repeat.",
            brief="Setting of the model; repeat.",
            unit="KEY=VALUE",
            repeat=True,
            parse=parse_settings,
        ),
    ] = None
    goodput: Annotated[
        Mapping[str, float],
        Option(
            "--goodput",
            "Objectives in milliseconds, as in ttft:500 tpot:50; they replace those of the file.",
            brief="Objectives: ttft:500 tpot:50.",
            unit="METRIC:MS",
            repeat=True,
            parse=parse_goodput,
        ),
    ] = dataclasses.field(default_factory=dict)
    record: Annotated[
        Path | None,
        Option(
            "--record",
            "File to write the predicted run to, as a recording.",
            brief="File to write the predicted run to.",
            unit="FILE",
        ),
    ] = None
    as_json: AsJson = False
