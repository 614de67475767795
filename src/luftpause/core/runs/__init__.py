"""One sub-agent's life: its events are its journal, and replaying them is recovery."""
