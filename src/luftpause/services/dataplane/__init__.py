"""The LLM door."""
