"""What to send and when: stages, schedule, arrivals, lengths, prompts. Pure and seeded."""
