"""The group, transaction and share coordinators: shards over the internal topics this node leads."""
