"""Engines on demand with a real model, measured; started by `benchmarks/swap.py`."""
