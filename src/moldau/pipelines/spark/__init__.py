"""Spark sessions: Java, settings, start-up, and the Python processes of a session on one machine."""
