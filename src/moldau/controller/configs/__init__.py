"""Configs of resources, log levels and client quotas."""
