"""The story of a run: its verdict in one sentence, and the lines that explain it."""
