"""Quotas of clients and connections: what is measured, which limit applies, how long to throttle. Pure."""
