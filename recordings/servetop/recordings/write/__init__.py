"""The one writer of a recording, and how a run resumes."""
