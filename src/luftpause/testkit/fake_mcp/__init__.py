"""Made-up tools behind a real MCP server.

`server.fake_mcp(settings)` runs one inside a test; `luftpause fake-mcp` runs one as a process.
"""
