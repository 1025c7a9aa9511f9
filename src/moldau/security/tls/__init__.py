"""TLS settings, key and trust stores, contexts, and the principals of certificates."""
