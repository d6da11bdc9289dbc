"""The rows of a recorded run as arrays: what summaries are computed from."""
