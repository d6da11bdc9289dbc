"""The simulator held against published tables."""
