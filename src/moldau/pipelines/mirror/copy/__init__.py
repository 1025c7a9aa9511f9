"""The copy of batches from source partitions to target partitions."""
