"""Environment variables and packaged files."""
