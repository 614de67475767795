"""The MCP door: sub-agents that survive a restart."""
