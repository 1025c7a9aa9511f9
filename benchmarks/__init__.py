"""Moldau beside Apache Kafka on the same machine, in the same run, with the same clients: `make bench`."""
