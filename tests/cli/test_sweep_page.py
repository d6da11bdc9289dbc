"""Every example of docs/how-to/sweep.md works as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from servetop.cli.commands import command_group
from servetop.cli.configuration.prediction import predict_specs
from servetop.cli.configuration.sweep_file import read_sweep, split_keys
from servetop.cli.configuration.sweep_grid import LOAD, WORKLOAD
from servetop.cli.configuration.sweep_plan import sweep_config
from servetop.cli.main import main, split_engine_args
from servetop.cli.options.config_file import read_config_file
from servetop.cli.options.file_keys import file_options, option_of_key
from servetop.core.errors import UsageError
from servetop.run.sweep.presets import example_sweep
from servetop.simulator.predict.predict import predict
from tests.cli.test_config_file import config_of
from tests.harness import RAN, Servetop

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "sweep.md").read_text(encoding="utf-8")
FILES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
SWEEPS = [text for text in FILES if not text.startswith("# config")]
CONFIGS = [text for text in FILES if text.startswith("# config")]
COMMANDS = [line for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU7_KEY", "a key")


def stored(tmp_path: Path, text: str) -> str:
    file = tmp_path / "grid.toml"
    file.write_text(text)
    return str(file)


def test_the_page_has_examples() -> None:
    assert (len(SWEEPS), len(CONFIGS), len(COMMANDS)) == (14, 1, 14)


@pytest.mark.parametrize("text", SWEEPS)
def test_a_sweep_file_of_the_page_is_a_sweep(tmp_path: Path, text: str) -> None:
    cells = [stage for stage in sweep_config(read_sweep(stored(tmp_path, text))).stages if not stage.warmup]
    assert len(cells) >= 2


@pytest.mark.parametrize("text", [text for text in SWEEPS if "[sim]" in text])
def test_a_sweep_file_of_the_page_runs_in_virtual_time(tmp_path: Path, text: str) -> None:
    file = stored(tmp_path, text)
    cells = predict(predict_specs(file)).cells
    measured = [stage for stage in sweep_config(read_sweep(file)).stages if not stage.warmup]
    assert len(cells) == len(measured)
    assert not [cell.error for cell in cells if cell.error]


@pytest.mark.parametrize("text", CONFIGS)
def test_a_config_file_of_the_page_is_a_run(tmp_path: Path, text: str) -> None:
    file = Path(stored(tmp_path, text))
    assert read_config_file(file).values
    assert config_of("--config", str(file)).stages


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page_is_understood(line: str) -> None:
    program, *words = shlex.split(line.split(" > ")[0])
    own, _ = split_engine_args(words)
    command = command_group()
    context = command.make_context(program, [], resilient_parsing=True)
    _, rest, _ = command.make_parser(context).parse_args(own)
    if rest:
        named = command.get_command(context, rest[0])
        assert named is not None
        assert named.make_context(rest[0], rest[1:], parent=context)


def test_the_example_is_the_one_that_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "--example"]) == 0
    assert capsys.readouterr().out == example_sweep() == SWEEPS[0]


def test_the_page_lists_every_key_that_a_sweep_file_may_have() -> None:
    listed = re.findall(r"`([a-z_]+)`", PAGE.partition("## All keys")[2].partition("\n## ")[0])
    assert len(listed) == len(set(listed))
    known = {*(each.spelling.lstrip("-").replace("-", "_") for each in file_options().values()), "engine_args"}
    assert set(listed) == {key for key in known if is_accepted(key)} | {
        "repeats",
        "order",
        "restart",
        "until",
        "cell_threshold",
        "grid",
        "cell",
        "sim",
        "published",
    }


def test_the_page_lists_every_key_of_a_grid() -> None:
    paragraph = PAGE.partition("**Keys of `[grid]` and `[[cell]]`**:")[2].partition("\n\n")[0]
    listed = [option_of_key(key, where="page") for key in re.findall(r"`([a-z_]+)`", paragraph)]
    assert sorted(listed) == sorted((*LOAD, *WORKLOAD, "seed", "model"))


def is_accepted(key: str) -> bool:
    """Whether a sweep file may have the key, whatever its value."""
    try:
        split_keys({key: 1}, where="file")
    except UsageError:
        return False
    return True


def test_new_names_and_old_names_mean_the_same(tmp_path: Path) -> None:
    old = """
        request_rate = [8]
        num_prompts = 5
        thresholds = ["failed<=0"]
        [engine]
        name = "vllm"
        extra_args = ["--dtype", "half"]
        [workload]
        dataset = "random"
        prefix_len = 4
        range_ratio = 0.5
        headers = { X-A = "b" }
    """
    new = """
        rate = 8
        num_prompts = 5
        threshold = "failed<=0"
        engine = "vllm"
        engine_args = ["--dtype", "half"]
        dataset_name = "random"
        random_prefix_len = 4
        random_range_ratio = 0.5
        header = ["X-A: b"]
    """
    one, other = (sweep_config(read_sweep(stored(tmp_path, text))) for text in (old, new))
    assert one == other


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("request_rate = 8\nramp = '8:5s'", "ramp has no place in a sweep file"),
        ("request_rate = 8\nrepeat = 2", "unknown key 'repeat': did you mean 'repeats'"),
        ("qps = 8\nvus = [1, 2]", "unknown key 'vus': did you mean 'max_concurrency'"),
        ("[sweep]\nrequest_rate = 8", "[sweep]: leave out this heading: the keys of a sweep belong to no table"),
        ("request_rate = 8\nzzzzz = 1", "(servetop --help-all), see docs/how-to/sweep.md"),
        (
            "request_rate = 8\n[workload]\nprefix_le = 3",
            "workload: unknown key 'prefix_le': did you mean",
        ),
    ],
)
def test_a_key_that_a_sweep_does_not_know_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    assert main(["sweep", stored(tmp_path, text), "--headless"]) == 2
    assert message in capsys.readouterr().err


def test_a_sweep_without_a_file_says_how_to_get_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep"]) == 2
    assert "servetop sweep --example" in capsys.readouterr().err


def test_a_url_on_the_command_line_takes_the_place_of_the_engine_that_would_be_started(tmp_path: Path) -> None:
    file = stored(tmp_path, SWEEPS[0].replace("# engine_args", "engine_args"))
    engine = read_sweep(file, {"url": ["http://gpu7:8000", "http://gpu8:8000"]}).engine
    assert (engine.name, engine.model, engine.extra_args) == ("auto", "", ())
    assert (engine.url, engine.more_urls) == ("http://gpu7:8000", ("http://gpu8:8000",))


@pytest.mark.integration
def test_the_example_runs_as_it_is(servetop: Servetop, tmp_path: Path) -> None:
    done = servetop("sweep", stored(tmp_path, servetop("sweep", "--example").out), "--json")
    assert done.code in RAN, done.err
    assert len([stage for stage in done.summary["stages"] if stage["finished"]]) >= 4
