"""Final numbers of a run, exact, from raw rows."""
