"""The two ways to hold the scheduler: a call in the same process, or frames over TCP."""
