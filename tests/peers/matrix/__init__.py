"""The matrix: servers of each SDK, over each transport, to clients of each SDK, with Toolgate between."""
