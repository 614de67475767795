"""One engine process's life: starting, ready, stopping, backing off."""
