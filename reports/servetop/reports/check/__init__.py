"""Results of `servetop check`: gates for CI, thresholds, what decides the exit code, and their forms."""
