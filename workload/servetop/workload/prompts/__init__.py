"""Prompts, lengths, conversations and token counts."""
