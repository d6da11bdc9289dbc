"""`servetop run-pairs`: two configurations, measured alternately."""
