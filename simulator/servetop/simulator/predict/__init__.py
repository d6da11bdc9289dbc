"""Virtual time: a sweep in seconds."""
