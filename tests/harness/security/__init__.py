"""Certificates, users and nodes of the tests with security."""
