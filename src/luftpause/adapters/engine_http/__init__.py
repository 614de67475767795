"""Speaks HTTP/1.1 to engines: a slim client of our own on asyncio and httptools."""
