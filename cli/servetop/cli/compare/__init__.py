"""The command `servetop compare`: text, Markdown and JSON of a comparison."""
