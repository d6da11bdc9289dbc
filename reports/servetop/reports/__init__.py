"""Results, and their forms for use outside the terminal."""
