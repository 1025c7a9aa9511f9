"""Decisions about the cluster metadata: topics, partitions, brokers, configs, quotas, features. Pure."""
