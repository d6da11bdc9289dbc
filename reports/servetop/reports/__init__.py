"""Results of recordings, and their forms."""
