"""The cells of a run: one load on one batch size each, and the stages that measured them."""
