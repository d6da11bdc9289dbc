"""The recording file: write, read, follow, verify. Knows no engine."""
