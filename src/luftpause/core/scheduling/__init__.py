"""Where and when a turn runs: `decide(state, event, now) -> Decision(state, actions)`."""
