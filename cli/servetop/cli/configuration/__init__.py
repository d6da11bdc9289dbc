"""From parsed options and sweep files to a run configuration."""
