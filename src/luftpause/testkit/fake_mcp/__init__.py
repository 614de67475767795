"""Two made-up tools behind a real MCP server."""
