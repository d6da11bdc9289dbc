"""The command line: commands, options, reports on the terminal. Nothing imports it."""
