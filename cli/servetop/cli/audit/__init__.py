"""`servetop audit`: command and text."""
