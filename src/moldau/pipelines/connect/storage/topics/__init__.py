"""Logs in topics: creating or checking a topic, writing to it, and reading it to its end."""
