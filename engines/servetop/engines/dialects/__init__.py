"""Wire dialects: how each kind of server is asked, and what its answer's bytes mean."""

from servetop.engines.dialects.registry import dialect_for

__all__ = ["dialect_for"]
