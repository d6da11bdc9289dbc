"""Which counters of an engine are of failed requests, and of which requests they are a part.

A failure is what the server did not do: HTTP 5xx, a refusal because it is full, an error in a step. What a client sends
wrong or gives up itself is none: HTTP 4xx of an engine that counts 429 among them, aborted requests, failed validation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HTTP_REQUESTS = "http_requests"
SHARED_SERIES = frozenset({f"{HTTP_REQUESTS}_total", HTTP_REQUESTS})
"""The answers of an HTTP server, which have this name on the pages of other programs too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureCounter:
    """A counter of requests, some values of whose label are failures."""

    name: str
    """With or without `_total` on the page."""
    label: str
    failures: re.Pattern[str]
    """Values of the label that are failures; those of other values count as requests only."""
    beside: str = ""
    """A counter of the other requests; empty: the counter has all."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its series on a page."""
        return (f"{self.name}_total", self.name)

    @property
    def names_beside(self) -> tuple[str, ...]:
        """The names of the series of the other requests; empty if the counter has all."""
        return (f"{self.beside}_total", self.beside) if self.beside else ()

    def is_failure(self, value: str) -> bool:
        """Whether a value of its label is a failure."""
        return self.failures.fullmatch(value) is not None


FAILURE_COUNTERS = (
    FailureCounter(name=HTTP_REQUESTS, label="status", failures=re.compile("5..")),
    FailureCounter(name="vllm:request_success", label="finished_reason", failures=re.compile("error")),
    FailureCounter(name="ray_vllm_request_success", label="finished_reason", failures=re.compile("error")),
    FailureCounter(
        name="trtllm_request_error", label="http_code", failures=re.compile("5..|429"), beside="trtllm_request_success"
    ),
    FailureCounter(
        name="tgi_request_failure",
        label="err",
        failures=re.compile("overloaded|generation|incomplete"),
        beside="tgi_request_success",
    ),
    FailureCounter(
        name="nv_inference_request_failure",
        label="reason",
        failures=re.compile("REJECTED|BACKEND|OTHER"),
        beside="nv_inference_request_success",
    ),
)
"""Of these the first that a page has counts: answers of the HTTP server include what failed before the engine."""
