"""The recording file: write, read, follow, verify, summarise."""
