"""Policy `working-set`: the memory of engines is given to runs, not to turns."""
