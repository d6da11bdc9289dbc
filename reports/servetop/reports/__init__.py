"""Reports and exports for use outside the terminal."""
