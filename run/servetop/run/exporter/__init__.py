"""The metrics of a live run for Prometheus: what they are, how they are counted, and the server that has them."""
