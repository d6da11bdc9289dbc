"""Wire dialects: how each kind of server is asked, and what its answer's bytes mean."""
