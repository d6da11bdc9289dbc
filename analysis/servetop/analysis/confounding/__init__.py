"""What differs between two runs besides the change under test: the conditions of each, and the differences."""
