"""Recordings on disk: paths, catalogue, sessions and liveness of their writers."""
