"""The dashboard in a browser (`--web`)."""
