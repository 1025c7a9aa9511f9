"""The share consumer (KIP-932), over our own protocol code."""
