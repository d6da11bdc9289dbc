"""The JSON schemas of results, from their types."""
