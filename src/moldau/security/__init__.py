"""Principals, TLS stores and contexts, SASL mechanisms, ACLs and delegation tokens."""
