"""The node: everything below wired together, and a handler for every API it serves."""
