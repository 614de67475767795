"""An engine of controllable speed and mood that answers like the real ones.

`server.fake_engine(settings)` runs one inside a test; `luftpause fake-engine` runs one as a process.
"""
