"""Reads responses with AIPerf's HTTP client and endpoints, without its services; runs in the peer's environment."""

from __future__ import annotations

import functools
from typing import Any

from aiperf.common.models import ModelEndpointInfo, ParsedResponseRecord, RequestRecord
from aiperf.common.models.record_models import find_last_non_empty_usage
from aiperf.plugin import plugins
from aiperf.plugin.enums import PluginType
from aiperf.transports.aiohttp_client import AioHttpClient

from tests.corpus.peers.readings import PeerReading, ResponseJob
from tests.corpus.peers.replay import Replay, main


async def read(replay: Replay, job: ResponseJob) -> PeerReading:
    """Send the request as a worker does, then judge and read the record as the parser of results does."""
    client = AioHttpClient(timeout=60)
    record = await client.post_request(f"{replay.url}/v1", b"{}", {"Content-Type": "application/json"})
    await client.close()
    record.create_error_from_invalid()
    try:
        return _failure(record) if record.has_error else _parsed(record, job)
    except Exception as error:
        return PeerReading(ok=False, error=f"{type(error).__name__}: {error}")


def _parsed(record: RequestRecord, job: ResponseJob) -> PeerReading:
    parsed = ParsedResponseRecord(request=record, responses=_endpoint(job.endpoint).extract_response_data(record))
    parsed.create_error_from_invalid()
    if parsed.has_error:
        return _failure(parsed.request)
    data = [response.data for response in parsed.content_responses]
    reasoning = [getattr(each, "reasoning", None) for each in data]
    texts = [each.content if thought else each.get_text() for each, thought in zip(data, reasoning, strict=True)]
    usage = find_last_non_empty_usage(parsed.responses)
    return PeerReading(
        ok=True,
        content="".join(text for text in texts if text),
        reasoning="".join(thought for thought in reasoning if thought),
        output_tokens=usage.completion_tokens if usage else None,
    )


def _failure(record: RequestRecord) -> PeerReading:
    return PeerReading(ok=False, error=f"{record.error.type}: {record.error.message}")


@functools.cache
def _endpoint(kind: str) -> Any:
    chosen = plugins.get_class(PluginType.ENDPOINT, kind)
    models = {"models": [{"name": "m"}], "model_selection_strategy": "round_robin"}
    return chosen(model_endpoint=ModelEndpointInfo.model_validate({"models": models, "endpoint": {"type": kind}}))


if __name__ == "__main__":
    main(read)
