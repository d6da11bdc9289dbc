"""The metrics of a live run, pushed to a collector by OTLP over HTTP."""
