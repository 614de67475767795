"""Processes of this machine that are started, watched, found again after a kill, and ended."""
