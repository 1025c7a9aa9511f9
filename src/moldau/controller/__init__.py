"""Decides changes to the cluster's metadata: topics, placement, brokers, in-sync replicas, configs, quotas.
Pure.
"""
