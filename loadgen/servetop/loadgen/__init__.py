"""Sender processes: transports, pacing, request state, reports."""
