"""Recordings on disk: paths, catalogue, sessions."""
