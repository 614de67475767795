"""One engine process's life: starting, ready, stopping, backing off. Decides; starts and signals nothing itself."""
