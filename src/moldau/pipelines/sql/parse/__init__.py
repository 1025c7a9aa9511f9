"""Parsing: text to statements."""
