"""Simulations of a Raft quorum from seeds: nodes, an unreliable network, and the invariants that must
hold."""
