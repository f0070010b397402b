//! Secrets, private atomic files, locks, clocks and escaped display: nothing of MCP.
