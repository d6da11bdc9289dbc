"""A field that vanishes from an engine's samples is named once."""

from servetop.core.events import EngineSample
from servetop.engines.metrics.lost_fields import LostFields


def sample(**values: float) -> EngineSample:
    return EngineSample(scrape_start=0.0, scrape_end=0.0, **values)


def test_a_field_that_vanishes_is_named_once() -> None:
    fields = LostFields()
    assert fields.update([sample(running=1, waiting=0)]) == []
    assert fields.update([sample(running=1), sample()]) == ["running", "waiting"]
    assert fields.update([sample(running=1), sample()]) == []


def test_another_engine_may_have_fewer_fields() -> None:
    fields = LostFields()
    fields.update([sample(running=1, waiting=0)])
    fields.start_again()
    assert fields.update([sample(running=1)]) == []
