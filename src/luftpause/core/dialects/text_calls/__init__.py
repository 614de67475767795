"""Tool calls that a model wrote as text, in the formats of the model families. Sans-IO, in bounded time."""
