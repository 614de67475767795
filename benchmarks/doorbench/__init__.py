"""The parts of the door benchmark: a raw engine, a raw load client, the peers, the measuring and the report."""
