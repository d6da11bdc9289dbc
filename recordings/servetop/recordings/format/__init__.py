"""The layout of the file: tables, codecs, checksums and limits."""
