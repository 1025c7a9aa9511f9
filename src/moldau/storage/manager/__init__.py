"""All logs of a node: the table of them, loading, creation, deletion, moves and periodic maintenance."""
