"""Whether a recorded run can be repeated here, and what differs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from servetop.analysis.manifest.manifest_diff import ManifestDifference, manifest_differences
from servetop.analysis.manifest.manifest_entries import NOT_SET
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.text.redaction import REDACTED

_CHECKED = (
    "engine.version",
    "engine.name",
    "engine.environment.",
    "gpu",
    "host.cpu",
    "host.processors",
    "model.",
    "workload.dataset_digest",
    "workload.tokenizer_digest",
)
"""Keys, or their beginnings, that must be equal for a repetition; others are only listed."""
_REPLACED_BY = {
    "model.": ("model", "url"),
    "engine.version": ("engine", "url", "engine_command", "image"),
    "engine.name": ("engine", "url"),
    "workload.dataset_digest": ("dataset_name", "dataset_path"),
    "workload.tokenizer_digest": ("tokenizer",),
}
"""Options that change a key on purpose, by the key or its beginning."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A reason not to repeat a run here."""

    text: str
    """What is missing or differs, and what to do, in one line."""
    overridable: bool = True
    """Whether `--anyway` repeats the run nevertheless."""


def obstacles(recorded: RunHeader, here: RunHeader, *, given: Collection[str]) -> Iterator[Obstacle]:
    """Return what must not differ for a repetition and does; `given` names the options on the command line.

    A secret variable that only this machine has is none: a key does not change a measurement.
    """
    texts = (
        _text(each)
        for each in manifest_differences(recorded, here)
        if each.a is not None
        and each.key.startswith(_CHECKED)
        and not _is_replaced(each.key, given)
        and not (each.a == NOT_SET and each.b == REDACTED)
    )
    yield from map(Obstacle, dict.fromkeys(texts))


def listed(differences: Sequence[ManifestDifference]) -> list[str]:
    """Return a line for each difference, aligned; None is a value that is not known."""
    width = max((len(each.key) for each in differences), default=0)
    return [f"{each.key:<{width}}  {each.a or '?'} → {each.b or '?'}" for each in differences]


def _is_replaced(key: str, given: Collection[str]) -> bool:
    return any(key.startswith(start) and not set(options).isdisjoint(given) for start, options in _REPLACED_BY.items())


def _text(difference: ManifestDifference) -> str:
    key, recorded, here = difference.key, difference.a, difference.b
    variable = key.removeprefix("engine.environment.")
    if variable != key:
        if here == NOT_SET:
            return f"{variable} was {recorded} and is not set: export it"
        return f"{variable} is {here}, was {recorded}: {'unset it' if recorded == NOT_SET else 'set it to that'}"
    if here is None and key.startswith("model."):
        return f"the files of the model are not on this machine: {_advice(key)}"
    if here is None:
        return f"{key} is not known here, was {recorded}: {_advice(key)}"
    return f"{key} is {here} here, was {recorded}: {_advice(key)}"


def _advice(key: str) -> str:
    advice = {
        "engine.version": "install that version, or name its environment with --engine-command",
        "engine.name": "start the recorded engine there",
        "model.name": "serve the recorded model, or give another --model",
        "model.": "get the recorded files, or give another --model",
        "workload.dataset_digest": "get the recorded data, or give another --dataset-path",
        "workload.tokenizer_digest": "get the recorded tokenizer, or give another --tokenizer",
        "gpu": "use such a GPU with such settings",
        "host": "use such a machine",
    }
    return next(text for start, text in advice.items() if key.startswith(start))
