"""The REST API of the registry: one module per resource, and the table of all routes."""
