"""What decides: pure functions over immutable values. No clock, no I/O, no randomness, no logging."""
