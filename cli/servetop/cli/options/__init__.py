"""Option declarations, their values and shell completion."""
