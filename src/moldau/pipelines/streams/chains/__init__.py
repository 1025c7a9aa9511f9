"""Chains of stateless steps: planned with serdes and topics, and run as one fused function."""
