"""A simulator: the real scheduling core against seeded models of engines and agents, in virtual time.

Start with `world.py`; docs/design/0008-simulator.md says what is modelled and what is not.
"""
