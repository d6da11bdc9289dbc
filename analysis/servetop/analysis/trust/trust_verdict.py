"""The verdicts of the trust meter."""

from __future__ import annotations

from enum import StrEnum


class TrustVerdict(StrEnum):
    """The verdict of the trust meter."""

    OK = "ok"
    SUSPECT = "suspect"
    """Client and engine disagree."""
    CLIENT_BOUND = "client-bound"
    """The client was the bottleneck, so the numbers describe the client rather than the engine."""
    NO_FIGURES = "no figures"
    """No request succeeded, so nothing was measured."""
    UNKNOWN = "unknown"
    """Nothing is known of the client: no request has been sent yet, or the run was imported."""
