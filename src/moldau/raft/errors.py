"""What must never happen in a quorum."""


class QuorumBroken(Exception):
    """A promise of the quorum was broken (two leaders of one epoch, a committed record taken back): whoever
    goes on would lose data, so the node must stop."""
