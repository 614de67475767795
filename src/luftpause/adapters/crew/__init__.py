"""Several processes that serve one door: the foreman starts them and keeps them running, each is a worker."""
