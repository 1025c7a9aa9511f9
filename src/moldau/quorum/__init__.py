"""The metadata quorum of a node: drives Raft over disk and network, and publishes the committed metadata."""
