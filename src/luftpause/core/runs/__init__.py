"""One sub-agent's life as a pure machine. Its events are its journal: replaying them is recovery."""
