from dataclasses import dataclass, fields
from typing import Any, get_type_hints

import pytest

from servetop.analysis.checks.rule_result import RuleResult
from servetop.analysis.checks.stage_figures import StageFigures
from servetop.analysis.checks.stage_rules import HonestyRule, Judged
from servetop.analysis.summary.summary_types import SkippedSummary, StageSummary
from servetop.analysis.sweep.cell_checks import CheckedCell
from servetop.cli.configuration.sweep_file import SweepFile
from servetop.cli.options.engine_options import ConnectionOptions, EngineOptions
from servetop.cli.options.load_options import LoadOptions
from servetop.cli.options.output_options import ResultOptions
from servetop.cli.options.request_options import DataOptions, RequestOptions
from servetop.core.config import ConnectionConfig, EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.core.events import StageChange
from servetop.core.interfaces.skipped_cell import SkippedCell
from servetop.core.same_fields import from_same_fields


@dataclass(frozen=True)
class _Point:
    x: int
    y: int = 5


@dataclass(frozen=True)
class _Shift:
    x: int
    name: str = "left"


def test_fields_of_the_same_name_are_taken_and_others_are_left_out() -> None:
    assert from_same_fields(_Point, _Shift(x=3)) == _Point(x=3, y=5)


def test_later_sources_replace_earlier_ones_and_keywords_replace_both() -> None:
    assert from_same_fields(_Point, _Point(x=1, y=2), _Shift(x=3)) == _Point(x=3, y=2)
    assert from_same_fields(_Point, _Point(x=1, y=2), _Shift(x=3), x=4) == _Point(x=4, y=2)


def test_a_field_without_a_value_is_an_error() -> None:
    with pytest.raises(TypeError, match="x"):
        from_same_fields(_Point, y=1)


USES: list[tuple[type[Any], type[Any], set[str]]] = [
    (WorkloadConfig, LoadOptions, set()),
    (WorkloadConfig, DataOptions, set()),
    (WorkloadConfig, RequestOptions, set()),
    (WorkloadConfig, ResultOptions, set()),
    (RunConfig, LoadOptions, {"prefix_cache"}),
    (RunConfig, ResultOptions, set()),
    (EngineConfig, EngineOptions, {"model", "url", "launcher", "image"}),
    (ConnectionConfig, ConnectionOptions, set()),
    (RunConfig, SweepFile, {"goodput", "prefix_cache", "metadata", "metric_percentiles", "published"}),
    (StageChange, StageConfig, {"request_rate", "ramp_strategy", "settings"}),
    (SkippedCell, StageConfig, {"settings"}),
    (StageSummary, StageChange, set()),
    (RuleResult, HonestyRule, set()),
    (RuleResult, StageFigures, {"stage"}),
    (RuleResult, Judged, set()),
    (CheckedCell, StageSummary, {"outcome"}),
    (SkippedSummary, SkippedCell, {"request_rate"}),
]
"""The classes that are built and those that they are built from; fields whose types differ are given by keyword, or
hold every value of the source's type."""


@pytest.mark.parametrize(("kind", "source", "differing"), USES)
def test_fields_of_the_same_name_have_the_same_type(kind: type[Any], source: type[Any], differing: set[str]) -> None:
    wanted, given = get_type_hints(kind), get_type_hints(source)
    common = {each.name for each in fields(kind)} & {each.name for each in fields(source)}
    assert common
    assert {name for name in common if wanted[name] != given[name]} == differing


@pytest.mark.parametrize("options", [DataOptions, RequestOptions, ConnectionOptions])
def test_every_option_of_requests_and_connection_reaches_the_configuration(options: type[Any]) -> None:
    kind = ConnectionConfig if options is ConnectionOptions else WorkloadConfig
    renamed = {"dataset_name", "header"}
    assert {each.name for each in fields(options)} - renamed <= {each.name for each in fields(kind)}
