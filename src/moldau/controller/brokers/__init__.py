"""Brokers and controllers: registration, sessions, fencing, log directories."""
