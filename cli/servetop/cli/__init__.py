"""The command line: puts the parts together."""
