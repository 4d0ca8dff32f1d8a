"""Read the answers of an upstream as they come, and rewrite them for the client."""
