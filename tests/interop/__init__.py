"""Comparisons with Apache Kafka and tests with clients and tools of other projects."""
