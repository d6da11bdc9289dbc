"""Writes a recording, and resumes an interrupted one."""
