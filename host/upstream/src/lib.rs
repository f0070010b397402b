//! Connections to MCP servers: stdio children and streamable HTTP, in both protocol eras.
