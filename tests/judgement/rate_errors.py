"""Measures how far estimated rates are from the truth, for their intervals: `python -m tests.judgement.rate_errors`.

The runs of some seeds set the factors of the intervals, and those of others tell how often such intervals contain the
truth. True rates take most of the time and do not depend on the estimates: those in the table are used again unless
`--fresh` is given, which a change of the simulator needs.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from servetop.analysis.diagnosis import rate_factors
from servetop.analysis.diagnosis.kept_load import kept_rate
from servetop.analysis.diagnosis.overload_intervals import RateEvidence, evidence, missed_rate
from tests.judgement.constant_rates import ConstantRates
from tests.judgement.judged import JudgedScenario
from tests.judgement.kinds import scenario
from tests.judgement.rate_coverage import RATES, RateError, coverage_report, factors_module, factors_of
from tests.judgement.report_page import say, write_between_marks
from tests.judgement.scenario import Scenario

TABLE = Path(__file__).with_name("rate_errors.jsonl")
"""One run per line."""
FACTORS = Path(rate_factors.__file__)
MARK = "<!-- make judge-rates -->"
RUNS = {"kv": 8, "batch": 8, "rate": 8, "ramp": 10, "wide": 8, "bursty": 64, "near-capacity": 10}
"""Scenarios of each seed, with overloads by the engine's own limits; few with bursty arrivals give an estimate."""
SETTING, CHECKING = (21, 22, 23), (24, 25, 26)
"""Seeds whose runs set the factors, and seeds whose runs are not used for them."""
Truths = Mapping[str, tuple[float, float]]
"""Sustainable rate and knee of each engine that is known."""


def main(argv: Sequence[str]) -> int:
    """Judge the runs of all seeds, and print the factors with their coverage; with `--write`, write them too."""
    options = parsed(argv)
    known = {} if options.fresh else {each.engine: each.true for each in read_table()}
    errors: list[RateError] = []
    for seed in (*SETTING, *CHECKING):
        drawn = (scenario(kind, number, seed=seed) for kind, count in RUNS.items() for number in range(count))
        for found in rate_errors(drawn, known):
            say(f"{found.kind} {found.number} of seed {seed}: {_ratios(found)}")
            errors.append(found)
    factors, lines = measured(errors)
    say("\n".join(lines))
    if options.write:
        TABLE.write_text("".join(f"{json.dumps(dataclasses.asdict(each))}\n" for each in errors), encoding="utf-8")
        FACTORS.write_text(factors, encoding="utf-8")
        write_between_marks(options.write, lines, mark=MARK)
    return 0


def measured(errors: Sequence[RateError]) -> tuple[str, list[str]]:
    """Return the module of the factors, and the figures for the page."""
    chosen = [each for each in errors if each.seed in SETTING]
    others = [each for each in errors if each.seed in CHECKING]
    factors = {rate: factors_of(chosen, rate, RateEvidence) for rate in RATES}
    seeds = f"Factors of the seeds {', '.join(map(str, SETTING))}; other runs: seeds {', '.join(map(str, CHECKING))}."
    return factors_module(factors), [seeds, "", *coverage_report(chosen, others, factors)]


def rate_errors(scenarios: Iterable[Scenario], known: Truths) -> Iterator[RateError]:
    """Yield what each run claims that gives an estimate, with true rates that are `known` or computed now."""
    for drawn in scenarios:
        judged = JudgedScenario(drawn)
        verdict, base = judged.verdict, drawn.base
        claims = verdict.main is not None and not verdict.is_lower_bound and (verdict.sustainable or verdict.knee)
        if base is None or not claims or verdict.main is None:
            continue
        engine = engine_key(base)
        kind, _, rest = drawn.plan.config.label.partition(" ")
        yield RateError(
            seed=int(rest.rpartition(" ")[2]),
            kind=kind,
            number=int(rest.partition(" ")[0]),
            engine=engine,
            limit=verdict.cause.value,
            evidence=evidence(verdict.main, judged.record).value,
            claimed=(verdict.sustainable, verdict.knee),
            true=known[engine] if engine in known else (base.largest(0.95), base.largest(0.50)),
            kept=kept_rate(judged.record, at=judged.record.until),
            missed=missed_rate(verdict.main, judged.record),
        )


def engine_key(base: ConstantRates) -> str:
    """Identify an engine with its workload and objective."""
    return hashlib.sha256(repr(base).encode()).hexdigest()[:12]


def read_table(path: Path = TABLE) -> list[RateError]:
    """Return the runs that were judged when the factors were measured; empty if they never were."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    return [RateError(**{**row, "claimed": tuple(row["claimed"]), "true": tuple(row["true"])}) for row in rows]


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.judgement.rate_errors", description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="compute the true rates again (20 minutes)")
    parser.add_argument("--write", type=Path, help="write table and factors, and the figures into this page")
    return parser.parse_args(argv)


def _ratios(found: RateError) -> str:
    shown = [f"{rate} {ratio:.3f}" for rate in RATES if (ratio := found.ratio(rate)) is not None]
    return f"{found.limit}, truth / estimate: {', '.join(shown)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
