"""Configs of brokers, topics, groups and client metrics: definitions, validation, files, dynamic changes."""
