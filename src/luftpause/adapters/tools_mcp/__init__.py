"""Tools on MCP servers, over stdio or streamable HTTP: one owner task per server."""
