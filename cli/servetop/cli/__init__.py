"""The command line: commands, options, text reports."""
