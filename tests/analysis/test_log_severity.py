"""The severity of the lines in an engine's log."""

from __future__ import annotations

import pytest

from servetop.analysis.diagnosis.log_severity import severity_of
from servetop.core.events import Severity


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("ERROR 11-21 10:00:00 [core.py:1] EngineCore failed", Severity.ERROR),
        ("torch.OutOfMemoryError: CUDA out of memory", Severity.ERROR),
        ("Traceback (most recent call last):", Severity.ERROR),
        ("WARNING 11-21 preempted", Severity.WARNING),
        ("(APIServer pid=7) WARNING 11-21 ulimit not increased with error current limit", Severity.WARNING),
        ("[error] 7#7: connect() failed", Severity.ERROR),
        ("INFO: 0 errors, error_rate=0", Severity.INFO),
        ("x" * 300 + "ERROR", Severity.INFO),
    ],
)
def test_the_severity_of_a_log_line_is_its_first_level(text: str, severity: Severity) -> None:
    assert severity_of(text) is severity
