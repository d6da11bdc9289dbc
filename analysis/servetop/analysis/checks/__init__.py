"""Rules that the figures of any recording must keep before they may be believed."""
