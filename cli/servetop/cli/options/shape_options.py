"""The options of `servetop shape`."""

from pathlib import Path
from typing import Annotated

from servetop.cli.options.declaration import Argument, Option, options_class
from servetop.cli.options.output_options import AsJson

SHAPE_FORMATS = ("json", "vllm", "otlp", "mooncake", "timed_trace", "table")


@options_class
class ShapeOptions:
    """The options of `servetop shape`."""

    sources: Annotated[
        tuple[str, ...],
        Argument("SOURCE", "Logs of gateways or servers, or traces, plain or gzipped; - is standard input."),
    ]
    output: Annotated[
        Path | None, Option("-o --output", "Trace to write.", unit="FILE", default="none: only the report")
    ] = None
    format: Annotated[
        str | None,
        Option("--format", "Format of all sources.", default="each by its content", choices=SHAPE_FORMATS),
    ] = None
    fields: Annotated[
        str,
        Option(
            "--fields",
            "Paths of the fields of JSON lines, as in timestamp=ts,input_length=usage.prompt_tokens; the others are "
            "output_length, prompt, session, and duration (seconds, subtracted from a timestamp of the end).",
            unit="FIELD=PATH",
            default="names that gateways use",
        ),
    ] = ""
    block_tokens: Annotated[
        int,
        Option(
            "--block-tokens",
            "Tokens of the blocks by which prompts are compared.",
            unit="TOKENS",
            minimum=1,
            maximum=4096,
        ),
    ] = 64
    characters_per_token: Annotated[
        float | None,
        Option(
            "--characters-per-token",
            "Characters of a token in prompts that are logged as text.",
            unit="NUMBER",
            default="measured from the first requests; 4 with --salt-file",
            minimum=0.25,
            maximum=100,
        ),
    ] = None
    input_len: Annotated[
        int | None,
        Option(
            "--input-len",
            "Prompt tokens of requests whose log has none.",
            unit="TOKENS",
            default="they are left out",
            minimum=1,
        ),
    ] = None
    output_len: Annotated[
        int, Option("--output-len", "Output tokens of requests whose log has none.", unit="TOKENS", minimum=1)
    ] = 128
    salt_file: Annotated[
        Path | None,
        Option(
            "--salt-file",
            "Secret key of the hashes, made if the file does not exist: equal prompts and sessions then have equal "
            "numbers in all traces that are written with it.",
            unit="FILE",
            default="a random key that is not kept",
        ),
    ] = None
    as_json: AsJson = False
