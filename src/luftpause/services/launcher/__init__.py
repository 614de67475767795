"""Starts, watches and stops engine processes."""
