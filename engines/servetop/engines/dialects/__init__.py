"""Dialects: request bodies and stream parsers (server-sent events, JSON) of each engine's HTTP API."""
