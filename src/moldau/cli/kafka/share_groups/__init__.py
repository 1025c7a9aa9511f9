"""`kafka-share-groups`."""
