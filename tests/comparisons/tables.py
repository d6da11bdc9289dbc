"""Tables of how often comparisons are right."""

from __future__ import annotations

from collections.abc import Mapping

from servetop.analysis.comparison.compared_metrics import Family
from servetop.analysis.comparison.verdicts import Verdict
from tests.comparisons.changed_engine import Answers
from tests.comparisons.same_engine import Tally


def same_table(tallies: Mapping[str, Tally]) -> list[str]:
    """Return false alarms and coverage by family, for each setting, as lines of Markdown."""
    families = [each for each in Family if any(tally.intervals[each] for tally in tallies.values())]
    lines = [
        f"| equal engines | pairs | {' | '.join(families)} |",
        f"|---|---|{'---|' * len(families)}",
    ]
    for name, tally in tallies.items():
        alarms = (_percent(tally.alarms[each], tally.pairs) for each in families)
        lines.append(f"| {name}: pairs with a false alarm | {tally.pairs} | {' | '.join(alarms)} |")
        covered = (_percent(tally.covered[each], tally.intervals[each]) for each in families)
        lines.append(f"| {name}: intervals that contain 0 | | {' | '.join(covered)} |")
    return lines


def change_table(answers: Mapping[str, Answers]) -> list[str]:
    """Return the verdicts on each planted change, as lines of Markdown."""
    lines = [
        "| planted | cases | answered at once | worse | no difference seen | better | cannot tell | measured for it |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, each in answers.items():
        cases = each.final.total()
        answered = cases - each.at_once[Verdict.CANNOT_TELL]
        order = (Verdict.WORSE, Verdict.NO_DIFFERENCE, Verdict.BETTER, Verdict.CANNOT_TELL)
        shares = " | ".join(_percent(each.final[verdict], cases) for verdict in order)
        lines.append(f"| {name} | {cases} | {_percent(answered, cases)} | {shares} | {each.cost} |")
    return lines


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"
