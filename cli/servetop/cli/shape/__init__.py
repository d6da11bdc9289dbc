"""`servetop shape`: command and text."""
