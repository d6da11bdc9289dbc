"""A recording in the formats of other tools: tables, and results of other load generators."""
