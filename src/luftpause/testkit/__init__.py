"""Fakes, load and simulation, shipped for users as well as for our own tests."""
