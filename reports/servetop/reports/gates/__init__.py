"""Gates for CI: limits on how much worse a run may be than a baseline, thresholds, and what decides the exit code."""
