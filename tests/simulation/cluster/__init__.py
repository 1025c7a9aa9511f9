"""Lives of whole clusters from seeds: clients, faults, and what must hold."""
