"""Replication: partitions in the roles of leader and follower, ISR changes, replica fetchers."""
