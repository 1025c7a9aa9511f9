"""Shared test code: Apache Kafka as an oracle, nodes, clients, raw frames and batches, waiting."""
