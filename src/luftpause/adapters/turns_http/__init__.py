"""Model turns over HTTP: Chat Completions, streamed, through the LLM door."""
