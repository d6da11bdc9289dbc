"""`servetop reconcile`: reads two results and explains why their figures differ."""
