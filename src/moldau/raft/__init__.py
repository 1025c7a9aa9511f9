"""The rules of the metadata quorum, pure: what follows from a message or from the passing of time."""
