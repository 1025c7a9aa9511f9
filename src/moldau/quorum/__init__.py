"""Drives the metadata quorum with disk and pool: the metadata log, its snapshots, and who leads."""
