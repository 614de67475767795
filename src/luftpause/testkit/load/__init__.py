"""Agents that come and go, for measuring: own-loop agents at the LLM door, sub-agents at the MCP door.

Independent of the code under test: it parses what it receives by itself.
"""
