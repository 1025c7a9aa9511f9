"""Tiered storage in a simulated cluster."""
