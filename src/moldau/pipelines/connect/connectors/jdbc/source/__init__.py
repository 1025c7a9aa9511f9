"""Rows of tables and queries as records."""
