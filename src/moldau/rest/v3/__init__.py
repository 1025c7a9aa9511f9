"""API v3: resources of a cluster with links, producing in streams, and consuming."""
