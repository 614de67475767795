"""The looks of `luftpause doctor`: one file for each, and what they share."""
