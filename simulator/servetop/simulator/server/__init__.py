"""The simulator in real time: HTTP, requests, responses and metrics pages that all dialects share."""
