"""A partition's roles, its high watermark and in-sync replicas; the replicas a node holds."""
