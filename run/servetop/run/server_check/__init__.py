"""A check of one server: a short request over each of its endpoints, read as a load reads it."""
