"""What the console knows about a cluster: one snapshot for all viewers, refreshed in the background."""
