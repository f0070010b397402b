//! MCP towards agents, over stdio and HTTP.
