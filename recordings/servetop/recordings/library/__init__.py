"""Recordings on disk: paths, catalogue, sessions, and whether a writer is alive."""
