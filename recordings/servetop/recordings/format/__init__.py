"""The recording format: tables, codecs, checksums, limits, and the process that writes a file."""
