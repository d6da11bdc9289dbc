"""No option on a command line is ignored: each has an effect, or another choice makes it an error."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from servetop.cli.commands import COMMANDS
from servetop.cli.configuration.idle_options import (
    OF_CHECKS,
    OF_REPLAYS,
    OF_RUNS,
    OF_SUMMARIES,
    OF_SWEEPS,
    RunChoices,
    refuse_idle_of_run,
)
from servetop.cli.main import main
from servetop.cli.options.audit_options import AuditOptions
from servetop.cli.options.declaration import declared
from servetop.cli.options.request_options import DataOptions, PromptOptions
from servetop.cli.options.run_options import RunOptions
from servetop.cli.options.serve_options import ServeOptions
from servetop.cli.options.shape_options import ShapeOptions
from servetop.core.config import ConnectionConfig, EngineConfig, RunConfig, WorkloadConfig
from servetop.core.errors import ExitCode, UsageError

ALWAYS = {
    "engine", "model", "url", "max_num_seqs", "transport", "proxy", "request_rate", "max_concurrency", "num_prompts",
    "duration", "ramp", "num_warmups", "drain_timeout", "workers", "seed", "input_len", "endpoint", "extra_body",
    "header_env", "model_mix", "cancel_fraction", "timeout", "goodput", "metric_percentiles", "threshold", "price",
    "max_failures", "label", "record", "no_record", "headless", "detach", "as_json", "web", "config", "version",
    "api_key_env", "metrics_url", "prometheus_port", "otlp_endpoint", "on_finish",
}  # fmt: skip
"""Options of a run that have an effect on every other choice, or exclude it by an error of their own."""
CHECKED_WITH_THE_LOAD = {
    "front_door", "metrics_api_key_env", "metrics_header_env", "engine_command", "launcher", "image",
    "ramp_up_start_rps", "ramp_up_end_rps", "cooldown", "prefix_cache", "against",
    *(option.name for option in declared(DataOptions)),
}  # fmt: skip
"""Options that are refused where engine, load and data are checked."""
COMMANDS_OWN = {
    "sweep": {"example"},
    "search": {"slo", "over", "low", "high", "budget", "precision", "prior", "no_prior", "resume"},
    "rerun": {"file", "anyway", "dry_run"},
    "run-pairs": {"files", "a", "b", "budget", "pairs", "metric", "margin", "into", "resume"},
    "watch": {"servers", "all_addresses", "hold", "on_episode", "keep"},
    "ps": {"as_json"},
    "stop": {"run", "now", "timeout"},
    "attach": {"run", "theme", "against", "reduced_motion"},
    "replay": {"file", "theme", "against", "reduced_motion", "read_only", "web"},
    "summary": {"file", "story", "markdown", "as_json"},
    "report": {"files", "output", "format", "price", "anyway"},
    "plot": {"file", "metric", "width"},
    "export": {"file", "format", "table", "stage", "output"},
    "import": {"files", "format", "output"},
    "manifest": {"file", "as_json"},
    "compare": {"recordings", "metric", "margin", "start_spread", "price", "anyway", "markdown", "as_json"},
    "reconcile": {"a", "b", "truth_a", "truth_b", "as_json"},
    "verify": {"files", "as_json"},
    "check": {
        "files", "baseline", "max_regression", "threshold", "rule", "ignore", "as_json", "junit", "github",
        "step_summary",
    },
    "ls": {"folder", "as_json"},
    "engines": {"name", "as_json"},
    "shape": {option.name for option in declared(ShapeOptions)},
    "dataset": {"path", "dataset_name", "dataset_column", "rows", "as_json"},
    "doctor": {"server", "as_json"},
    "predict": {
        "file", "preset", "settings", "goodput", "model", "gpu", "engine_profile", "max_num_seqs", "request_rate",
        "input_len", "output_len", "num_prompts", "arrivals", "record", "as_json",
        *(option.name for option in declared(PromptOptions)),
    },
    "validate": {"as_json"},
    "serve": {option.name for option in declared(ServeOptions)},
    "audit": {option.name for option in declared(AuditOptions)},
}  # fmt: skip
"""Options of each command that always have an effect there, or exclude another one by an error of their own."""
TABLES: dict[str, Any] = {
    "sweep": OF_SWEEPS, "replay": OF_REPLAYS, "summary": OF_SUMMARIES, "check": OF_CHECKS,
}  # fmt: skip


def test_every_option_of_a_run_has_an_effect_or_a_reason() -> None:
    assert {option.name for option in declared(RunOptions)} == OF_RUNS.keys() | ALWAYS | CHECKED_WITH_THE_LOAD


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_option_of_a_command_has_an_effect_or_a_reason(command: Any) -> None:
    runs = command.name in ("rerun", "run-pairs", "doctor", "search", "watch")
    of_runs = {option.name for option in declared(RunOptions)} if runs else set()
    own = COMMANDS_OWN[command.name] | TABLES.get(command.name, {}).keys()
    assert {option.name for option in declared(command.options)} - of_runs == own - of_runs


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("--url http://127.0.0.1:9 --port 80 --headless", "--port: the server at --url is already running"),
        ("--url http://127.0.0.1:9 --start-timeout 9", "--start-timeout: the server at --url is already running"),
        ("--attach-timeout 9", "--attach-timeout: servetop starts this engine"),
        ("--url http://127.0.0.1:9 --insecure", "--insecure: the connection is not encrypted"),
        ("--max-concurrency 2 --arrivals constant", "--arrivals: a closed loop sends whenever"),
        ("--max-concurrency 2 --burstiness 0.5", "--burstiness: a closed loop sends whenever"),
        ("--num-prompts 2 --burstiness 0.5", "--burstiness: all requests are due at once"),
        ("--num-prompts 2 --think-time 1", "--think-time: all requests are due at once"),
        ("--dataset-name azure-conv --request-rate inf --num-prompts 5 --time-scale 2", "--time-scale: all requests"),
        ("--dataset-name azure-conv --request-rate inf --max-concurrency 5 --jitter 2", "--jitter: a closed loop"),
        ("--ramp 4:10s --ramp-up-strategy exponential", "--ramp-up-strategy: no stage of --ramp changes its rate"),
        ('--temperature 1 --extra-body {"temperature":0}', "--temperature: --extra-body sets or removes it too"),
        ('--n 2 --extra-body {"n":null}', "--n: --extra-body sets or removes it too"),
        ('--no-stream --extra-body {"stream":true}', "--stream: --extra-body sets or removes it too"),
        ('--no-ignore-eos --extra-body {"ignore_eos":true}', "--ignore-eos: --extra-body sets or removes it too"),
        ('--output-len 9 --extra-body {"max_tokens":8}', "--random-output-len: --extra-body sets or removes it"),
        ("--header X-A:b --header-env x-a=HOME", "--header: --header-env sets the same header"),
        ("--no-record --store-texts", "--store-texts: --no-record keeps no recording"),
        ("--no-record --metadata a=b", "--metadata: --no-record keeps no recording"),
        ("--theme dark", "--theme: it is for the dashboard"),
        ("--reduced-motion", "--reduced-motion: it is for the dashboard"),
        ("--web-port 9", "--web-port: it is for the page of --web"),
        ("--web-host ::", "--web-host: it is for the page of --web"),
        ("--web-steer", "--web-steer: it is for the page of --web"),
        ("rerun sample --attach-timeout 9", "--attach-timeout: servetop starts this engine"),
        ("doctor http://127.0.0.1:9 --insecure", "--insecure: the connection is not encrypted"),
        ("watch http://127.0.0.1:9 --headless --insecure", "--insecure: the connection is not encrypted"),
        ("watch http://127.0.0.1:9 --headless --theme dark", "--theme: it is for the dashboard"),
        ("watch http://127.0.0.1:9 --no-record --metadata a=b", "--metadata: --no-record keeps no recording"),
        ("run-pairs --a= --b= --attach-timeout 9", "--attach-timeout: servetop starts this engine"),
        (
            "run-pairs --a= --b= --metric p50_ttft_ms --margin p99_ttft_ms=9%",
            "p99_ttft_ms: this metric is not compared",
        ),
        ("compare sample sample:h200 --anyway --metric p50_ttft_ms --margin p99_ttft_ms=9%", "is not compared"),
        ("sweep --example --resume", "--resume: --example prints a sweep file and exits"),
        ("replay sample --web-port 9", "--web-port: it is for the page of --web"),
        ("replay sample --web --web-steer --read-only", "--web-steer: --read-only allows no control"),
        ("summary sample --since 14:00", "--since: it is for the story of a watch: add --story"),
        ("summary sample --until 14:00", "--until: it is for the story of a watch: add --story"),
        ("summary sample --story --since 14:00", "--since and --until: overload is a run, whose story is one"),
        ("summary sample --story --price 2/h", "--price: --story and --markdown print what limited the run"),
        ("check sample --anyway", "--anyway: it is for a comparison"),
        ("check sample --start-spread 5%", "--start-spread: it is for a comparison"),
        ("predict --arrivals constant", "--arrivals: all requests are due at once"),
        ("dataset azure-conv --dataset-column a", "--dataset-column: azure-conv has no column to choose"),
    ],
)
def test_an_option_without_effect_is_refused(line: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(line.replace('"', '\\"'))
    runs = words[0].startswith("-")
    assert main([*words, *(["--headless"] if runs and "--headless" not in words else [])]) == ExitCode.USAGE
    assert reason in capsys.readouterr().err


def test_a_certificate_has_no_effect_on_a_connection_that_accepts_any() -> None:
    connection = ConnectionConfig(ca_cert="ca.pem", insecure=True)
    engine = EngineConfig(url="https://gpu7", connection=connection)
    with pytest.raises(UsageError, match="--ca-cert: --insecure accepts any certificate"):
        refuse_idle_of_run({"ca_cert": "ca.pem"}, RunChoices(RunConfig(engine=engine)))


@pytest.mark.parametrize(
    "words",
    [
        ["--max-concurrency", "2", "--burstiness", "1"],
        ["--attach-timeout", "30"],
        ["--ignore-eos", "--extra-body", '{"ignore_eos": true}'],
    ],
)
def test_a_value_that_is_the_default_is_accepted(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--num-prompts", "4", "--output-len", "4", "--headless", "--no-record"]) == ExitCode.OK
    assert "leave it out" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "body"),
    [
        ("output_len", {"max_completion_tokens": 10, "max_tokens": None}),
        ("output_len", {"stream_options": None}),
        ("temperature", {"temperature": 0.5}),
        ("ignore_eos", {"ignore_eos": False}),
    ],
)
def test_the_same_value_in_an_option_and_in_the_body_is_accepted(option: str, body: dict[str, object]) -> None:
    given: dict[str, list[str] | bool] = {"output_len": ["10"], "temperature": ["0.5"], "ignore_eos": False}
    workload = WorkloadConfig(output_len=10, temperature=0.5, ignore_eos=False, extra_body=body)
    refuse_idle_of_run({option: given[option]}, RunChoices(RunConfig(workload=workload)))


def test_a_value_of_a_file_is_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "base.toml"
    file.write_text("attach_timeout = 5\nburstiness = 0.5\nnum_prompts = 4\noutput_len = 4\nmax_concurrency = 2\n")
    assert main(["--config", str(file), "--headless", "--no-record"]) == ExitCode.OK, capsys.readouterr().err
