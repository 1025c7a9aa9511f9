"""The connection to a cluster: settings, metadata, retries, coordinators."""
