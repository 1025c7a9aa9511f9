"""Benchmarks of Moldau and Apache Kafka on the same machine with the same clients: `make bench`."""
