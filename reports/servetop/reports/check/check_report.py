"""What `servetop check` found: one item for each limit and load, threshold, and rule, and the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from servetop.analysis.cells.stage_load import StageLoad
from servetop.analysis.checks.check_outcome import CheckOutcome
from servetop.analysis.checks.rule_result import RuleResult
from servetop.analysis.checks.thresholds import Threshold
from servetop.analysis.manifest.manifest_diff import ManifestDifference
from servetop.core.errors import ExitCode
from servetop.reports.check.gate_text import sentence
from servetop.reports.check.regression_gate import RegressionGate, same_load


class ItemKind(StrEnum):
    """What an item checks."""

    LIMIT = "max-regression"
    THRESHOLD = "threshold"
    RULE = "honesty"


_BROKEN = {ItemKind.LIMIT: "regression", ItemKind.THRESHOLD: "not met", ItemKind.RULE: "broken"}
"""What a broken item of each kind is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckItem:
    """One thing that was checked."""

    kind: ItemKind
    name: str
    """The limit, the condition or the rule."""
    load: str = ""
    """The load with the number of its stage; empty for the whole run."""
    recording: str = ""
    """The name of the recording, if there are several."""
    outcome: CheckOutcome
    text: str
    """What was found, in one sentence."""
    decides: bool = True
    """Whether the exit code depends on it."""
    gate: RegressionGate | None = None
    rule: RuleResult | None = None
    value: float | None = None
    """Of a threshold's key; None if not measured."""

    @property
    def word(self) -> str:
        """The outcome as it is called for items of this kind: a broken limit is a `regression`."""
        return _BROKEN[self.kind] if self.outcome is CheckOutcome.BROKEN else str(self.outcome)

    @property
    def title(self) -> str:
        """The name with the load and the recording."""
        at = f" at {self.load}" if self.load else ""
        return f"{self.name}{at}{f' in {self.recording}' if self.recording else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """Everything that was checked."""

    runs: Sequence[str]
    baselines: Sequence[str] = ()
    items: Sequence[CheckItem]
    warnings: Sequence[str] = ()
    changes: Sequence[ManifestDifference] = ()
    """Known differences between the engines and clients of the baseline and the run."""
    without_counterpart: Sequence[str] = ()
    """Loads of only one side."""

    @property
    def exit_code(self) -> ExitCode:
        """A failed item before one that cannot be decided; the rules alone also cannot be decided if none was kept."""
        outcomes = [item.outcome for item in self.items if item.decides]
        if CheckOutcome.BROKEN in outcomes:
            return ExitCode.THRESHOLDS
        if any(item.kind is not ItemKind.RULE for item in self.items):
            return ExitCode.CANNOT_TELL if CheckOutcome.CANNOT_TELL in outcomes else ExitCode.OK
        return ExitCode.OK if CheckOutcome.KEPT in outcomes else ExitCode.CANNOT_TELL

    @property
    def reason(self) -> str:
        """Why the exit code is not 0, in one line; empty if it is."""
        code, items = self.exit_code, [item for item in self.items if item.decides]
        if code is ExitCode.OK:
            return ""
        failed = [item for item in items if item.outcome is CheckOutcome.BROKEN]
        relevant = failed or [item for item in items if item.outcome is CheckOutcome.CANNOT_TELL]
        if not relevant:
            return "cannot tell: no rule could be applied"
        first = relevant[0]
        more = f" (and {len(relevant) - 1} more)" if len(relevant) > 1 else ""
        return f"{first.word}: {first.title}: {first.text}{more}"

    @property
    def headline(self) -> str:
        """The answer with the number of items behind it: `kept: 3 of 3`."""
        deciding = [item for item in self.items if item.decides and item.outcome is not CheckOutcome.NOT_APPLICABLE]
        counts = Counter(item.word for item in deciding)
        parts = [f"{counts[word]} {word}" for word in ("kept", *_BROKEN.values(), "cannot tell") if counts[word]]
        return f"{len(deciding)} checked: {', '.join(parts) or 'none could be judged'}"

    @property
    def shown(self) -> list[CheckItem]:
        """The items for people: those that decide, and others that are not kept."""
        return [each for each in self.items if each.decides or each.outcome not in _NOT_SHOWN]

    def of_kind(self, kind: ItemKind) -> list[CheckItem]:
        """Return the items of one kind for people, in order."""
        return [item for item in self.shown if item.kind is kind]


_NOT_SHOWN = (CheckOutcome.KEPT, CheckOutcome.NOT_APPLICABLE)


def gate_items(gates: Iterable[RegressionGate], *, loads: Mapping[int, StageLoad]) -> list[CheckItem]:
    """Return one item for each limit and load; `loads` are those of the run's stages by number."""
    return [
        CheckItem(
            kind=ItemKind.LIMIT,
            name=str(gate.limit),
            load="" if gate.load is None else _place(gate.load, loads),
            outcome=gate.outcome,
            text=sentence(gate),
            gate=gate,
        )
        for gate in gates
    ]


def _place(load: StageLoad, loads: Mapping[int, StageLoad]) -> str:
    """Return the load with the numbers of its stages: `4 req/s (stages 0, 3)`."""
    numbers = [str(number) for number, each in sorted(loads.items()) if same_load(load, each)]
    return f"{load.label} (stage{'s' if len(numbers) > 1 else ''} {', '.join(numbers)})"


def rule_items(
    results: Iterable[RuleResult], *, recording: str = "", several_stages: bool = True, decides: bool = True
) -> list[CheckItem]:
    """Return one item for each result; `recording` names it if there are several."""
    return [
        CheckItem(
            kind=ItemKind.RULE,
            name=each.name,
            load=_stage_of(each.stage if several_stages else None, each.label),
            recording=recording,
            outcome=each.state,
            text=each.text,
            decides=decides,
            rule=each,
        )
        for each in results
    ]


def threshold_items(
    threshold: Threshold, numbers: Mapping[str, Any], *, rules: Sequence[RuleResult], recording: str = ""
) -> list[CheckItem]:
    """Return one item for each stage that a condition is for; one on figures of a broken rule cannot be decided."""
    labels = {each.stage: each.label for each in rules}
    values = threshold.values(numbers)
    if not values:
        text = "there are no stages"
        return [CheckItem(kind=ItemKind.THRESHOLD, name=str(threshold), outcome=CheckOutcome.BROKEN, text=text)]
    found = []
    for stage, value in values.items():
        broken = next((each for each in rules if _spoils(each, threshold, stage)), None)
        met = CheckOutcome.KEPT if threshold.is_met(value) else CheckOutcome.BROKEN
        text = "not measured" if value is None else f"it is {value:g}"
        found.append(
            CheckItem(
                kind=ItemKind.THRESHOLD,
                name=str(threshold),
                load=_stage_of(stage, labels.get(stage, "")),
                recording=recording,
                outcome=met if broken is None else CheckOutcome.CANNOT_TELL,
                text=text if broken is None else f"{text}, but {broken.name} is broken: {broken.text}",
                value=value,
            )
        )
    return found


def _stage_of(stage: int | None, label: str) -> str:
    """Return the load of a stage with its number: `8 req/s (stage 2)`."""
    return "" if stage is None else f"{label} (stage {stage})" if label else f"stage {stage}"


def _spoils(result: RuleResult, threshold: Threshold, stage: int | None) -> bool:
    concerned = stage is None or result.stage == stage
    return concerned and result.state is CheckOutcome.BROKEN and result.bearing.covers(threshold.within)
