"""Who may come in at a door: tokens, host names, origins, and no request that could be read in two ways."""
