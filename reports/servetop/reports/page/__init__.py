"""A result as one HTML file that works offline."""
