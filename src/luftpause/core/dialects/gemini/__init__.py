"""Gemini's generateContent: how it is read and written, and how it is said in Chat Completions."""
