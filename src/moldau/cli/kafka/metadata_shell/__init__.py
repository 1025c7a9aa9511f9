"""`kafka-metadata-shell`: the metadata of a cluster as a tree of files."""
