"""Click commands from functions and declared options, their help pages and shell completion."""
