"""Compiles the modules that every turn passes through. Why and which: docs/design/0024-compiled-hot-path.md."""
