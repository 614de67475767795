"""Which models are up: what to load, what to unload and when. See docs/design/0032-which-models-are-up.md."""
