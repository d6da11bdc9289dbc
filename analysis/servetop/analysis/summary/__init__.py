"""The summary of a run: its types, its JSON form, and the JSON schema of that form."""
