"""What-if: what an event log recorded, taken as a load and simulated under another policy."""
