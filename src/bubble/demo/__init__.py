"""The demonstration: recorded replies, a little play for people and a bot, and the proof that nothing of it was lost."""
