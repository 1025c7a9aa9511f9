"""Compilation of SELECT to Spark SQL."""
