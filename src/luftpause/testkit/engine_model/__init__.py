"""One model of a batching engine, in virtual time.

Two shells drive it: `testkit/sim` jumps from event to event, `testkit/fake_engine` lets each step take its real time
and streams every token over HTTP. Begin with `engine.py`; docs/design/0008-simulator.md says what is modelled.
"""
