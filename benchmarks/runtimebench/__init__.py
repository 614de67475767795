"""What the runtime costs: its journal, a start, and many sub-agents at once."""
