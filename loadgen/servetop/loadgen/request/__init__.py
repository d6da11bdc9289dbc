"""One request: rendering, state, chunk log, record."""
