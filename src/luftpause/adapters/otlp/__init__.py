"""Spans and counts to whoever collects them, over OTLP/HTTP. Nothing here is imported unless that is asked for."""
