"""Text: numbers for people, and what keeps terminal control sequences and secrets out of what is printed and stored."""
