"""The summary of a run: its types, its JSON form and their JSON schema."""
