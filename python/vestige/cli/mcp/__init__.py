"""`vestige mcp`: answers about traces for agents, by the Model Context Protocol."""
