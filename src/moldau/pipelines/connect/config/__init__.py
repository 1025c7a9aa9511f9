"""Definitions of settings, and their validation."""
