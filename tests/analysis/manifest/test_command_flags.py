"""Options of command lines, compared without their order and spelling."""

import pytest

from servetop.analysis.manifest.command_flags import flags_of, stable_path


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("serve --a=1 --b 2", "serve --b=2 --a 1"),
        ("--enable-prefix-caching --seed 0", "--seed 0 --enable_prefix_caching"),
        ("--gpu-memory-utilization 0.90", "--gpu-memory-utilization=0.9"),
        ("--flag True", "--flag=true"),
        ("--seed -1 --x", "--x --seed=-1"),
        ("--lora a --lora b", "--lora b --lora a"),
        ('--config {"a":1,"b":2}', '--config={"b":2,"a":1}'),
        ("--port 8000 --metrics-port=9", "--port {port}"),
        ("run --name servetop-41-9 image", "run --name servetop-42-8 image"),
        ("--template /tmp/tmpab12cd34/chat.jinja", "--template /tmp/tmpzz99zz99/chat.jinja"),
    ],
)
def test_command_lines_that_mean_the_same_have_equal_options(one: str, other: str) -> None:
    assert flags_of(one.split(" ")) == flags_of(other.split(" "))
    assert flags_of(one.split(" ")) or "port" in one


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("--a 1", "--a 2"),
        ("--enable-x", "--no-enable-x"),
        ("--seed -1", "--seed 1"),
        ("--a 1 --b", "--a 1"),
        ("--name llama", "--name opt"),
        ("--template /tmp/x/chat.jinja", "--template /tmp/x/other.jinja"),
    ],
)
def test_command_lines_that_differ_have_different_options(one: str, other: str) -> None:
    assert flags_of(one.split()) != flags_of(other.split())


def test_the_model_is_left_out_wherever_it_is() -> None:
    words = ["serve", "/models/llama", "--tokenizer", "/models/llama", "--enforce-eager", "--dtype=half"]
    flags = flags_of(words, model_names={"/models/llama"})
    assert flags == {"command": "serve", "tokenizer": "true", "enforce-eager": "true", "dtype": "half"}


@pytest.mark.parametrize(
    ("path", "stable"),
    [
        ("/models/x", "/models/x"),
        ("/tmp/tmpa1b2c3d4", "{tmp}"),
        ("/tmp/servetop-x1/app.py", "{tmp}/app.py"),
        ("/dev/shm/run/weights", "{tmp}/weights"),
    ],
)
def test_only_temporary_folders_are_shortened(path: str, stable: str) -> None:
    assert stable_path(path) == stable
