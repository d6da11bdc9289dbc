"""Commands that show what there is without a run: recordings, their manifests and damage, engines, datasets."""
