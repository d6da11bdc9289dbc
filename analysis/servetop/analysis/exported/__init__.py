"""Series of an engine's metrics page beyond the fields of EngineSample: their history and their values."""
