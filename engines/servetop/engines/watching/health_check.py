"""What is sampled of a watched server while no metrics are read: that it answers, and how fast."""

from __future__ import annotations

from dataclasses import dataclass

from servetop.analysis.exported.metric_spec import MetricSpec, Unit
from servetop.core.clock import Clock
from servetop.core.events import EngineSample
from servetop.core.text import formats
from servetop.engines.control.control_client import HttpResult, ServerClient
from servetop.engines.metrics.spec_builders import gauge_of

HEALTH_SECONDS = "servetop_health_check_seconds"
"""The series of answer times, which servetop measures itself."""
HEALTH_EXPORTED: MetricSpec = gauge_of("Health check", "answer time", HEALTH_SECONDS, unit=Unit.SECONDS)
_SERVER_ERROR = 500
_MARKUP = b"<"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthAnswer:
    """The result of one health check."""

    path: str
    result: HttpResult
    start: float
    end: float

    @property
    def is_given(self) -> bool:
        """Whether the server answers requests; a path that it does not know is an answer too."""
        return not self.result.error and self.result.status < _SERVER_ERROR

    @property
    def is_healthy(self) -> bool:
        """Whether it is the answer of an engine: HTTP 200, and not the page of a web server."""
        return self.result.ok and not self.result.body.lstrip().startswith(_MARKUP)

    @property
    def text(self) -> str:
        """The answer in a few words, such as `/health: HTTP 200 in 3.1 ms`."""
        if self.result.error:
            return f"{self.path}: {self.result.error}"
        return f"{self.path}: HTTP {self.result.status} in {formats.seconds(self.end - self.start)}"

    @property
    def sample(self) -> EngineSample | None:
        """A sample without values: the server answered; None if it did not."""
        return EngineSample(scrape_start=self.start, scrape_end=self.end) if self.is_given else None

    @property
    def page(self) -> bytes:
        """The answer time as a metrics page."""
        return f"{HEALTH_SECONDS} {self.end - self.start:.6f}\n".encode()


class HealthCheck:
    """Asks one server for its health."""

    def __init__(self, client: ServerClient, path: str, clock: Clock) -> None:
        self._client, self._path, self._clock = client, path, clock

    async def ask(self) -> HealthAnswer:
        """Send one request."""
        start = self._clock.now()
        result = await self._client.request(self._path)
        return HealthAnswer(path=self._path, result=result, start=start, end=self._clock.now())
