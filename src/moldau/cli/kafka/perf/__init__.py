"""The performance tools: `kafka-producer-perf-test`, `kafka-consumer-perf-test`, `kafka-e2e-latency`."""
