"""The shell of the bench over HTTP: agents that play a scenario's runs at real doors, with time running faster.

Start with `measure.py`.
"""
