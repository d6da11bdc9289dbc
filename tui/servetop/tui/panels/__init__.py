"""Panels: each one draws a part of a moment of a run, and knows nothing of the others."""
