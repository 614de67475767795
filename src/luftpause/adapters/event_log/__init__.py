"""The scheduler's event log: what it was told, what it ordered, and a proof that the same would be ordered again."""
