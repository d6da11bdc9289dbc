"""What differs between the manifests of two runs, and whether that makes their figures incomparable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from servetop.analysis.manifest.manifest_entries import NOT_SET, launch_arguments, manifest_entries
from servetop.core.interfaces.run_source import RunHeader


class DifferenceKind(StrEnum):
    """What a difference concerns."""

    WORKLOAD = "workload"
    """Model, data, lengths or outputs: the figures of the two runs are not comparable."""
    SETTING = "setting"
    """The engine or its GPUs: perhaps the change under test."""
    CLIENT = "client"
    """The machine, version or settings of servetop."""
    SEED = "seed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestDifference:
    """A key of the manifests whose values differ."""

    key: str
    """Dotted name, as in `engine.args.max-num-batched-tokens`."""
    kind: DifferenceKind
    a: str | None
    """Value of the first run; None: not recorded."""
    b: str | None
    """Value of the second run; None: not recorded."""

    @property
    def unknown(self) -> bool:
        """Whether one run does not have the value, so that it may be equal."""
        return self.a is None or self.b is None

    @property
    def is_unlike(self) -> bool:
        """Whether it is a known one of the workload, so that the figures of the two runs are not comparable."""
        return self.kind is DifferenceKind.WORKLOAD and not self.unknown


_CLOSED = ("engine.args.", "engine.environment.", "workload.")
"""Groups in which a missing key means that the option or variable was not given."""
_RECORDED = "recorded"
_KINDS: Mapping[str, DifferenceKind] = {
    "workload": DifferenceKind.WORKLOAD,
    "model": DifferenceKind.WORKLOAD,
    "seed": DifferenceKind.SEED,
    "client": DifferenceKind.CLIENT,
    "servetop": DifferenceKind.CLIENT,
    "host": DifferenceKind.CLIENT,
}
"""Kind by the first part of a key; others are settings."""
_MODEL_FILES = ("model.config", "model.tokenizer", "model.weights")
_DIGESTS = {
    "workload.dataset_digest": "workload.dataset_path",
    "workload.tokenizer_digest": "workload.tokenizer",
}
"""Keys of digests, and the keys that do not count where both digests are known."""


def manifest_differences(a: RunHeader, b: RunHeader) -> tuple[ManifestDifference, ...]:
    """Return the differences between two runs, by kind; at the end the keys that only one of them has, as `unknown`.

    Stages, labels, metadata, ports, pids, temporary folders and the time of the start are not compared.
    """
    known = [bool(launch_arguments(each)) for each in (a, b)]
    launched = all(found or each.config.engine.url is not None for each, found in zip((a, b), known, strict=True))
    left, right = (manifest_entries(each, launched=launched) for each in (a, b))
    for key in _decided_by_digests(left, right):
        left.pop(key, None)
        right.pop(key, None)
    lacking = _groups_lacking(a, launched=known[0]), _groups_lacking(b, launched=known[1])
    found: dict[str, ManifestDifference] = {}
    for key in dict.fromkeys((*left, *right)):
        if left.get(key) != right.get(key) and not _of_one_device(key, left, right):
            difference = _difference(key, left.get(key), right.get(key), lacking=lacking)
            found.setdefault(difference.key, difference)
    kinds = list(DifferenceKind)
    return tuple(sorted(found.values(), key=lambda each: (each.unknown, kinds.index(each.kind))))


def comparable(a: RunHeader, b: RunHeader) -> tuple[ManifestDifference, ...]:
    """Return the known differences of the workload, which make the figures of two runs incomparable; empty if none."""
    return tuple(each for each in manifest_differences(a, b) if each.is_unlike)


def kind_of(key: str) -> DifferenceKind:
    """Return the kind of a difference in this key."""
    return _KINDS.get(key.partition(".")[0], DifferenceKind.SETTING)


def _decided_by_digests(left: Mapping[str, str], right: Mapping[str, str]) -> list[str]:
    """Return the keys of names that do not count, because the digests of the files are known."""
    decided = [name for digest, name in _DIGESTS.items() if digest in left and digest in right]
    known = [{key for key in _MODEL_FILES if key in side} for side in (left, right)]
    if known[0] and known[0] == known[1]:
        decided.append("model.name")
    return decided


def _groups_lacking(header: RunHeader, *, launched: bool) -> frozenset[str]:
    """Groups of keys that a recording has no information about; they are reported as a whole.

    `launched`: it has the command that started the engine.
    """
    attached = header.config.engine.url is not None
    lacking = {
        "engine.args": attached,
        "engine.environment": not launched,
        "gpu": not header.manifest.get("gpu"),
    }
    return frozenset(group for group, lacks in lacking.items() if lacks)


def _of_one_device(key: str, left: Mapping[str, str], right: Mapping[str, str]) -> bool:
    """Whether a key belongs to a GPU that only one of two runs with GPUs has; `gpu.count` differs then."""
    group, number, *_ = (*key.split("."), "")
    if group != "gpu" or not number.isdecimal() or not ("gpu.count" in left and "gpu.count" in right):
        return False
    return int(number) >= min(int(left["gpu.count"]), int(right["gpu.count"]))


def _difference(
    key: str, a: str | None, b: str | None, *, lacking: tuple[frozenset[str], frozenset[str]]
) -> ManifestDifference:
    group = next((each for each in lacking[0] | lacking[1] if key.startswith(f"{each}.")), "")
    if group:
        a, b = (None if group in side else _RECORDED for side in lacking)
        return ManifestDifference(key=group, kind=kind_of(group), a=a, b=b)
    if key.startswith(_CLOSED) and key not in _DIGESTS:
        a, b = (NOT_SET if each is None else each for each in (a, b))
    return ManifestDifference(key=key, kind=kind_of(key), a=a, b=b)
