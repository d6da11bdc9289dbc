"""The simulator in real time: an HTTP server that runs the scheduler."""
