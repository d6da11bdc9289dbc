"""What a request demands of the server: completions (`n`), and tokens by `ignore_eos` or `min_tokens`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from servetop.core.config import WorkloadConfig
from servetop.core.interfaces.dialect import Dialect, Prompt

_PLANNED = 987
"""Output length of the request that is rendered to find out what requests demand."""
_LIMITS = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "n_predict",
    "sampling_param_max_tokens",
)
_MINIMA = ("min_tokens", "min_new_tokens")


@dataclass(frozen=True, slots=True)
class RequiredOutput:
    """The completions, and the tokens of each: as many as planned, or a fixed number; 0 if the model may stop."""

    as_planned: bool = False
    fixed: int = 0
    choices: int = 1
    """Completions of each prompt."""

    def tokens(self, planned: int) -> int:
        """Return the demand of a request whose completions are planned to have `planned` tokens each."""
        return self.choices * (planned if self.as_planned else self.fixed)


def required_output(dialect: Dialect, workload: WorkloadConfig) -> RequiredOutput:
    """Return what the bodies of a workload's requests demand; nothing if they cannot be read."""
    probe = Prompt(text="a", token_ids=(1,), input_tokens=1, output_tokens=_PLANNED)
    try:
        body = orjson.loads(dialect.body(probe, workload))
    except ValueError:
        return RequiredOutput(choices=workload.n)
    fields = _flat(body) if isinstance(body, dict) else {}
    demands = _LIMITS if fields.get("ignore_eos") is True else _MINIMA
    found = next((fields[name] for name in demands if type(fields.get(name)) is int), 0)
    choices = fields["n"] if type(fields.get("n")) is int else workload.n
    planned = found == _PLANNED
    return RequiredOutput(as_planned=planned, fixed=0 if planned else max(0, found), choices=max(1, choices))


def _flat(body: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a body and of the objects in it, such as SGLang's `sampling_params`."""
    inner = [value for value in body.values() if isinstance(value, dict)]
    return {**{name: each[name] for each in inner for name in each}, **body}
