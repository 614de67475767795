"""The MCP door: the runtime's tools in both eras of the protocol, its questions to people, and runs as tasks."""
