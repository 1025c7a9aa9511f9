"""Hosting of mirrors: on an event loop of this process, or as long-lived Spark tasks."""
