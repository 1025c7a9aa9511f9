"""Kafka's command-line tools, one module or package per tool."""
