"""Execution of statements on Spark."""
