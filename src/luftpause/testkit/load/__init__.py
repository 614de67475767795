"""Agents that come and go, for measuring."""
