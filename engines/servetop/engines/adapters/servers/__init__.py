"""Programs that run in an engine's own environment."""
