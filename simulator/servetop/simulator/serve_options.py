"""The options of the simulator's server."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

from servetop.core.errors import UsageError
from servetop.simulator.dialects.registry import server_dialect_names


def help_text() -> str:
    """The help page, as wide as the terminal; without a line end."""
    return parser().format_help().rstrip()


def option_names() -> list[str]:
    """Return the long options of the command line, for shell completion."""
    return sorted(word for each in _shown() for word in each.option_strings if word.startswith("--"))


def _shown() -> list[argparse.Action]:
    return [each for each in parser()._actions if each.help != argparse.SUPPRESS]


def described_options() -> list[tuple[str, str]]:
    """Return each option, as in `--port PORT`, and its help."""
    described = []
    for each in _shown():
        value = "|".join(map(str, each.choices)) if each.choices else each.metavar or each.dest.upper()
        described.append((", ".join(each.option_strings) + ("" if each.nargs == 0 else f" {value}"), each.help or ""))
    return described


def api_key(variable: str | None, environ: Mapping[str, str]) -> str:
    """Return the API key in an environment variable; empty without one, UsageError if it is not set or unusable."""
    if variable is None:
        return ""
    key = environ.get(variable, "").strip()
    if not key:
        raise UsageError(f"--api-key-env {variable}: the variable is not set: export {variable}=KEY")
    if not key.isascii() or not key.isprintable():
        raise UsageError(f"--api-key-env {variable}: a key consists of printable ASCII characters")
    return key


def parser() -> argparse.ArgumentParser:
    """The parser of the command line; the help has the defaults."""
    made = argparse.ArgumentParser(
        prog="servetop serve",
        usage="%(prog)s [OPTIONS]",
        description="Serve the simulator over HTTP, with the API of an engine.",
        allow_abbrev=False,  # as everywhere else in servetop
    )
    add = made.add_argument
    add("--host", default="127.0.0.1", help="address to listen at; default: 127.0.0.1")
    add("--port", type=_port, default=8000, help="port to listen at, 0 for a free one; default: 8000")
    add("--model", default="llama-2-7b", help="a model profile; default: llama-2-7b")
    add("--served-model-name", help="the name that clients use; default: --model as given")
    add(
        "--lora-modules",
        nargs="*",
        default=[],
        help="further served names, as NAME or NAME=PATH; at no cost",
    )
    add("--gpu", default="a100-40", help="a GPU profile; default: a100-40")
    add(
        "--dialect",
        default="vllm",
        choices=server_dialect_names(),
        help="engine whose HTTP API and metrics are emulated",
    )
    add("--engine-profile", help="an engine generation; default: the dialect's (vllm: vllm-0.2.1)")
    add("--policy", help="a scheduling policy instead of the profile's")
    add("--max-num-seqs", type=_positive, help="batch size; default: the profile's")
    add("--kv-blocks", type=_positive, help="KV blocks; default: what fits into the GPU")
    add("--block-size", type=_positive, help="tokens of a KV block; default: the profile's")
    add("--max-model-len", type=_positive, help="context length in tokens; default: the model's")
    add("--tensor-parallel", type=_positive, default=1, help="number of GPUs; default: 1")
    add("--time-scale", type=_factor, default=1.0, help="factor of every duration: 0.1 is ten times as fast")
    _add_server_options(add)
    return made


def _add_server_options(add: Callable[..., argparse.Action]) -> None:
    add("--metrics-port", type=_port, default=0, help="triton: metrics port; default: --port plus 2")
    add("--no-metrics", action="store_true", help="sglang, llama.cpp: serve no metrics page")
    add("--enable-per-request-metrics", action="store_true", help="vllm: report each request's queue and prefill time")
    add("--max-concurrent-requests", type=_positive, default=128, help="tgi: reject further requests with status 429")
    add(
        "--api-key-env",
        metavar="VARIABLE",
        help="environment variable with the API key that requests need; default: none",
    )
    add("--api-key", type=_no_key, help=argparse.SUPPRESS)
    add("--seed", type=int, default=0, help="seed of the output lengths of requests without ignore_eos")


def _no_key(_: str) -> str:
    raise argparse.ArgumentTypeError(
        "a key here is visible to other users in ps: export it, and give the name of the variable with --api-key-env"
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port (0 to 65535)")
    return int(text)


def _factor(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return value
