"""The model names that users type."""

from __future__ import annotations

from pathlib import Path

import pytest

from servetop.core.errors import UsageError
from servetop.engines.adapters.model_names import aliases, resolve_model


def test_every_alias_is_lower_case_and_stands_for_a_hub_name() -> None:
    for alias, name in aliases().items():
        assert alias == alias.lower()
        assert name.count("/") == 1
        assert resolve_model(alias.upper()) == name


def test_hub_names_and_existing_folders_are_used_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_model("org/some-model") == "org/some-model"
    assert resolve_model(str(tmp_path)) == str(tmp_path)
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    assert resolve_model("mine") == "mine"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve_model("~/mine") == str(tmp_path / "mine")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("", "no model is named: give --model"),
        ("/no/such/model", "there is no model at /no/such/model"),
        ("lama-2-7b", "unknown model 'lama-2-7b': did you mean llama-2-7b"),
        ("zzzzzz", "an example of an alias is llama-2-7b"),
    ],
)
def test_a_name_that_cannot_be_resolved_is_an_error_with_a_way_out(model: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve_model(model)
