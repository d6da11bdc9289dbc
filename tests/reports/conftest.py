"""The fixtures of recordings: reports are made of them."""

from tests.recordings.conftest import header, make_request, make_tick, reader, recorder, same, summary_of

__all__ = ["header", "make_request", "make_tick", "reader", "recorder", "same", "summary_of"]
