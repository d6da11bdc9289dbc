"""The recording format: tables, codecs, checksums and limits."""
