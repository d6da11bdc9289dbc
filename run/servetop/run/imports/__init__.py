"""Results of other load generators as recordings."""
