"""`--config` reads the options of a run from a file or a recording; the command line overrides them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from servetop.cli.commands import command_group
from servetop.cli.configuration.configure import run_config
from servetop.cli.framework.command_line import command_line_of
from servetop.cli.main import main
from servetop.cli.options.config_file import with_config_file
from servetop.cli.options.run_options import RunOptions
from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig, StageConfig
from servetop.core.errors import ExitCode, UsageError
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.write.recorder import Recorder
from tests.harness import RAN, Servetop

ANCHOR = ClockAnchor(origin_ns=1_000, wall_epoch_s=1_700_000_000.0)


def config_of(*words: str) -> RunConfig:
    """What `servetop WORDS` would run."""
    own, engine_args = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, ())
    context = command_group().make_context("servetop", list(own))
    options, file = with_config_file(command_line_of(context, RunOptions).given)
    return run_config(options, engine_args, file)


def recording_of(tmp_path: Path, *words: str) -> str:
    return recorded(tmp_path, config_of(*words))


def recorded(tmp_path: Path, config: RunConfig) -> str:
    path = tmp_path / "run.servetop"
    Recorder.create(path, RunHeader(config=config, anchor=ANCHOR)).close(RunEnd(at=0.0, exit_code=0, reason=""))
    return str(path)


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    file = tmp_path / "run.toml"
    file.write_text(
        'engine = "vllm"\nqps = 8\nduration = "1m"\nrandom-input-len = 64\nignore_eos = false\nmax_num_seqs = 32\n'
        'goodput = ["ttft:500", "tpot:50"]\nmetadata = { card = "a100" }\nengine_args = ["--dtype", "half"]\n'
    )
    return file


def test_a_key_may_be_any_spelling_of_its_option(toml: Path) -> None:
    assert config_of("--config", str(toml)) == config_of(
        "--engine", "vllm", "--request-rate", "8", "--duration", "60", "--input-len", "64", "--no-ignore-eos",
        "--max-num-seqs", "32", "--goodput", "ttft:500", "--goodput", "tpot:50", "--metadata", "card=a100",
        "--", "--dtype", "half",
    )  # fmt: skip


def test_the_command_line_overrides_the_file(toml: Path) -> None:
    config = config_of("--config", str(toml), "--request-rate", "4", "--goodput", "e2el:9", "--", "--quick")
    assert [(stage.request_rate, stage.duration) for stage in config.stages] == [(4, 60)]
    assert config.goodput == {"e2el": 0.009}
    assert config.engine.extra_args == ("--quick",)


def test_a_ramp_on_the_command_line_replaces_the_load_of_the_file(toml: Path) -> None:
    stages = config_of("--config", str(toml), "--ramp", "4:2s,8:3s").stages
    assert [(stage.request_rate, stage.duration) for stage in stages] == [(4, 2), (8, 3)]
    toml.write_text('ramp = "4:2s,8:3s"')
    stages = config_of("--config", str(toml), "--num-prompts", "5", "--rate", "2").stages
    assert [(stage.request_rate, stage.num_prompts) for stage in stages] == [(2, 5)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("datset_name = 'sonnet'", "unknown key 'datset_name': did you mean 'dataset_name'"),
        ("users = 5", "unknown key 'users': did you mean 'max_concurrency'"),
        ("zzz = 5", "unknown key 'zzz': keys are spelled like the options"),
        ("seed = 'many'", "invalid --seed many: use a whole number"),
        ("ignore_eos = 'yes'", "ignore_eos = 'yes': use true or false"),
        ("request_rate = [8, 16]", "request_rate = .8, 16.: use one value"),
        ("config = 'other.toml'", "unknown key 'config'"),
        ("seed = ", "is neither a recording nor a TOML file"),
    ],
)
def test_an_invalid_file_is_an_error_of_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    file = tmp_path / "run.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        config_of("--config", str(file))
    assert main(["--config", str(file), "--headless"]) == ExitCode.USAGE
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_missing_file_is_named_in_the_error() -> None:
    with pytest.raises(UsageError, match=r"--config nowhere.toml: No such file"):
        config_of("--config", "nowhere.toml")


@pytest.mark.parametrize(
    "words",
    [
        ("--request-rate", "8", "--duration", "30s", "--num-warmups", "4", "--seed", "7", "--workers", "auto"),
        (
            "--max-concurrency",
            "4",
            "--num-prompts",
            "9",
            "--cooldown",
            "2",
            "--drain-timeout",
            "7",
            "--dataset-name",
            "sonnet",
            "--label",
            "x",
        ),
        ("--request-rate", "8", "--duration", "30s", "--drain-timeout", "0"),
        ("--ramp-up-strategy", "linear", "--ramp-up-start-rps", "1", "--ramp-up-end-rps", "9", "--duration", "20s"),
        ("--ramp", "4:2s,4-8:3s,8@16:1s", "--goodput", "ttft:500", "--threshold", "failed<=0"),
        (),
        ("--url", "http://a:1", "--url", "http://b:1", "--front-door", "http://c:1", "--insecure", "--no-ignore-eos"),
        (
            "--extra-body",
            '{"top_p": 0.9}',
            "--header-env",
            "X-A=HOST_OF_A",
            "--model-mix",
            "a=3,b=1",
            "--metadata",
            "k=v",
        ),
        ("--engine", "vllm", "--engine-command", "python -m x 'y z'", "--port", "8001", "--", "--dtype", "half"),
        ("--dataset-name", "azure-conv", "--time-scale", "2", "--store-texts", "--temperature", "0.5"),
        ("--metric-percentiles", "99.9,75", "--threshold", "p12.5_itl_ms<=5"),
        ("--price", " $2.5/h ", "--price", "$3:0.3:15/Mtok", "--threshold", "cost.per_million_tokens<=0.5"),
    ],
)
def test_the_run_of_a_recording_is_repeated_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("HOST_OF_A", "a")
    assert config_of("--config", recording_of(tmp_path, *words)) == config_of(*words)


def test_the_conditions_on_the_cells_of_a_recorded_sweep_are_those_of_its_load(tmp_path: Path) -> None:
    run = dataclasses.replace(
        config_of("--ramp", "4:2s,8:3s"), until=("failed>0",), cell_thresholds=("p99_ttft_ms<=500",)
    )
    recording = recorded(tmp_path, run)
    assert config_of("--config", recording) == run
    other = config_of("--config", recording, "--rate", "2", "--duration", "5")
    assert (other.until, other.cell_thresholds) == ((), ())


def test_a_recorded_sweep_restarts_its_engine_between_repeats_again_unless_it_is_one_at_a_url(tmp_path: Path) -> None:
    plan = [
        StageConfig(num_prompts=3, max_concurrency=8, repeat=repeat, warmup=warmup)
        for repeat in (0, 1)
        for warmup in (True, False)
    ]
    run = dataclasses.replace(config_of("--ramp", "4:2s,8:3s"), stages=tuple(plan), restart="repeats")
    recording = recorded(tmp_path, run)
    assert config_of("--config", recording) == run
    attached = config_of("--config", recording, "--url", "http://127.0.0.1:9")
    assert (attached.restart, [stage.repeat for stage in attached.stages if not stage.warmup]) == (None, [0, 1])


def test_a_load_option_replaces_the_stages_of_a_recording(tmp_path: Path) -> None:
    recording = recording_of(tmp_path, "--ramp", "4:2s,8:3s")
    stages = config_of("--config", recording, "--rate", "2", "--duration", "5").stages
    assert [(stage.request_rate, stage.duration) for stage in stages] == [(2, 5)]


def test_a_secret_that_a_recording_omits_must_be_given_again(tmp_path: Path) -> None:
    recording = recording_of(tmp_path, "--header", "X-Api-Key: open-sesame")
    with pytest.raises(UsageError, match=r"does not contain the secret value of workload.headers.X-Api-Key"):
        config_of("--config", recording)
    given = config_of("--config", recording, "--header", "X-Api-Key: open-sesame")
    assert given.workload.headers == {"X-Api-Key": "open-sesame"}


@pytest.mark.parametrize("spelling", ["--request-rate", "--rate", "--qps", "--rps"])
def test_the_request_rate_has_four_spellings(spelling: str) -> None:
    assert config_of(spelling, "8").stages[0].request_rate == 8


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--users", "--max-concurrency"), ("--concurrency", "--max-concurrency"), ("--streams", "--max-concurrency"),
        ("--VUs", "--max-concurrency"), ("--batch-size", "--max-num-seqs"), ("--QPS", "--qps"), ("--RPS", "--rps"),
        ("--request-rat", "--request-rate"), ("--num-requests", "--num-prompts"), ("--dataset", "--dataset-name"),
    ],
)  # fmt: skip
def test_names_of_other_tools_suggest_our_option(capsys: pytest.CaptureFixture[str], typed: str, meant: str) -> None:
    assert main([typed, "8"]) == ExitCode.USAGE
    assert (
        capsys.readouterr().err == f"servetop: no such option: {typed}: did you mean {meant}? (see servetop --help)\n"
    )


def test_the_name_of_an_argument_is_not_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shape", "log.jsonl", "--source"]) == ExitCode.USAGE
    assert capsys.readouterr().err == "servetop: no such option: --source (see servetop --help)\n"


@pytest.mark.parametrize(("typed", "key"), [("--goodput", "goodput"), ("--request-rate", "request_rate")])
def test_an_option_of_a_run_is_a_key_of_a_sweep_file(capsys: pytest.CaptureFixture[str], typed: str, key: str) -> None:
    assert main(["sweep", "grid.toml", typed, "8"]) == ExitCode.USAGE
    assert f"no such option: {typed}: write {key} = … into the sweep file" in capsys.readouterr().err


@pytest.mark.parametrize("typed", ["--no-record", "--ramp", "--web"])
def test_an_option_that_no_sweep_has_is_not_proposed_for_its_file(
    capsys: pytest.CaptureFixture[str], typed: str
) -> None:
    assert main(["sweep", "grid.toml", typed]) == ExitCode.USAGE
    assert f"no such option: {typed}: it is one of a run, not of sweep" in capsys.readouterr().err


def test_an_option_of_a_run_is_not_confused_with_one_of_predict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "--duration", "5s"]) == ExitCode.USAGE
    assert "no such option: --duration: it is one of a run, not of predict" in capsys.readouterr().err


def test_a_threshold_on_a_cost_needs_a_price() -> None:
    with pytest.raises(UsageError, match=r"--threshold cost.per_request<=1: add what the server costs, as in --price"):
        config_of("--threshold", "cost.per_request<=1")


def test_percentiles_are_those_requested_and_those_that_thresholds_need() -> None:
    config = config_of("--metric-percentiles", "50,99.9,75", "--threshold", "p12.5_itl_ms<=5")
    assert config.metric_percentiles == (12.5, 75, 99.9)
    with pytest.raises(UsageError, match=r"--metric-percentiles 101: use numbers from 0 to 100"):
        config_of("--metric-percentiles", "101")


@pytest.mark.integration
def test_a_run_is_repeated_by_the_whole_command(servetop: Servetop) -> None:
    first = servetop("--request-rate", "50", "--num-prompts", "10", "--output-len", "4", "--seed", "3", "--json")
    again = servetop("--config", "latest", "--json")
    assert again.code in RAN, again.err
    keys = ("num_prompts", "completed", "total_input_tokens", "total_output_tokens")
    assert [again.summary[key] for key in keys] == [first.summary[key] for key in keys]
