"""The rows of a recorded run as arrays, from which summaries are computed."""
