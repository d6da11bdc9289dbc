"""One request from its rendering to its record."""
