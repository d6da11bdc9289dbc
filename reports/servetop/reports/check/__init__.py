"""Results of `servetop check`."""
