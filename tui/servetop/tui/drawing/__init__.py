"""Pure drawing: text runs, charts, tables, number formats."""
