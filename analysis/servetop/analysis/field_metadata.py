"""How a field of the summary is written as JSON."""

from __future__ import annotations

FLAT = {"flat": True}
"""Metadata of a field whose keys are part of its owner's JSON object."""
OMITTED = {"omitted": True}
"""Metadata of a field whose key is absent, rather than null, if its value is None."""
PARSED = {"parsed": True}
"""Metadata of a field whose text is JSON, and an object of its own in JSON."""
RATE = {"rate": True}
"""Metadata of a field whose infinite value is the string `inf` in JSON, as in vLLM's results."""
INTERNAL = {"internal": True}
"""Metadata of a field that is not written."""
