"""The recording file: write, read, follow, summarise."""
