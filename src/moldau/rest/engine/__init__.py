"""Kafka clients of the proxy: producers shared by all requests, consumers without threads, admin clients."""
