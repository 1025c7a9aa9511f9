"""The data directories of a node (`log.dirs`): locks, checkpoint files, names of folders."""
