"""One adapter for each engine: launch command, readiness, options and limits."""
