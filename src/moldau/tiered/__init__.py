"""Tiered storage (KIP-405): closed segments in a remote store, and what is known about them."""
