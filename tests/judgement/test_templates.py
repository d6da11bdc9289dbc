"""Each text that the judgement can print is read by a pattern, so that no sentence stays unscored."""

from __future__ import annotations

import pytest

from servetop.analysis.diagnosis.diagnosis import Bottleneck
from servetop.analysis.diagnosis.run_verdict import RunCause
from tests.judgement.statements import UnknownStatementError, statements_of
from tests.judgement.templates import Template, templates

FOUND = templates()
PARTS = frozenset({
    "'requests were left unserved'", "'requests in flight still grew'", "'running count'", "'KV usage'",
    "'batch limit'",
    "f'the batch size changes{times}'", "f'the engine restarts{times} with another batch size'",
    "f'about {capacity.running:.0f} sequences'", "f'which limit holds them is unknown{reason}'",
    "f'{fitting_sequences(run):.0f} that its {facts.kv_blocks_total:,} blocks should hold'",
    "f'full before, now {percent(moment.kv)}'", "f'up to {percent(moment.kv_peak)}'",
    "f'rises from {seconds(before)} to'",
    """f"replicas {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}\"""",
    "f'more KV memory for {place}'", "f'a larger max_num_seqs for {place}'", "f'a lower rate for {place}'",
    "'restarting the engine'", "'HTTP 429'", "'KV cache'", "'few in flight'", "'none succeeded'", "'closed loop'",
    "'others refused'", "'too short to judge'", "'short requests'", "'kernel timestamps'",
    "f'held back by limit {self.concurrency_limit}'", "'held back by the limit'",
    "f'{_share(requests):.0%} of the requests in the engine'", "f'{_share(tokens):.0%} of its tokens'",
    "'of an earlier run'", "'that it should not have'",
})  # fmt: skip
"""The texts that only stand inside of others, or are compared with, as they are in the source."""
OF_WATCHES = (
    Bottleneck.NO_METRICS, Bottleneck.NO_RESPONSE, Bottleneck.SLOWER, Bottleneck.NOT_JUDGED, Bottleneck.WAITING,
    Bottleneck.SERVING,
)  # fmt: skip
"""The names that only a watch has, which no simulated run is."""
WATCH_PARTS = frozenset(
    {
        "'no metrics'",
        "'no response'",
        "'slower than the others'",
        "'not judged'",
        "'requests wait'",
        "'more replicas or KV memory'",
    }
)
"""The texts of a watch in modules that runs use too."""


@pytest.mark.parametrize("template", [each for each in FOUND if not each.is_part], ids=lambda each: each.source)
def test_each_text_of_the_judgement_is_scored(template: Template) -> None:
    if template.source in PARTS | WATCH_PARTS:
        return
    for text in template.texts:
        assert statements_of(text), template.source


def test_the_texts_that_are_parts_are_still_there() -> None:
    assert (PARTS | WATCH_PARTS) - {each.source for each in FOUND} == frozenset()


@pytest.mark.parametrize("cause", [each for each in (*RunCause, *Bottleneck) if each not in OF_WATCHES])
def test_each_name_of_a_verdict_is_scored(cause: RunCause | Bottleneck) -> None:
    assert [each.name for each in statements_of(cause.value)] in (["cause"], ["quiet"])


def test_a_new_sentence_would_be_found() -> None:
    texts = [text for each in FOUND for text in each.texts]
    assert "the batch of 16 is full at 5.0 req/s" in texts
    assert "requests in flight still grew when the load ended: the engine may not keep up" in texts
    with pytest.raises(UnknownStatementError):
        statements_of("the engine is tired at 5.0 req/s")
