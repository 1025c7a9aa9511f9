"""Readers of key and trust stores: JKS, PKCS12 and PEM, from files and inline."""
