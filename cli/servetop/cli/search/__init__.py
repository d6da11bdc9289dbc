"""`servetop search`, from its options to the run."""
