"""`servetop check`: gates for CI."""
