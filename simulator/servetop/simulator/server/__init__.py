"""Real time: an HTTP server on the same scheduler."""
