"""Comparison of the streams API and SQL with Kafka Streams: `python -m benchmarks.streams`."""
