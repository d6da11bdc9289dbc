"""The running batch of an engine, reconstructed from the requests of a run."""
