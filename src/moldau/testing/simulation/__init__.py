"""A world without chance: loop, clock, network, disk and threads that do the same again for the same seed.

`world.Simulation` holds one such world. Nodes in it are real ones (`server.node.Node`): only what they are
handed is simulated. See `docs/TESTING.md`.
"""
