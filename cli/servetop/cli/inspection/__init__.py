"""Commands without a run: comparison and check of recordings, lists of what there is, manifests and damage."""
