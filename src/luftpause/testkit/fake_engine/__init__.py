"""An engine of controllable speed and mood that answers like the real ones."""
