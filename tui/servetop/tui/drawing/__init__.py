"""Drawing primitives: text runs, charts, tables, number formats."""
