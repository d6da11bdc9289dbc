"""The panels of a search for the largest load within objectives."""
