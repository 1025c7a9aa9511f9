"""Simulations of whole clusters from seeds: clients, faults and invariants."""
