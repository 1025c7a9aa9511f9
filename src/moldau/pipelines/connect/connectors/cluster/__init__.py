"""Another cluster: as a source by MirrorMaker 2's connectors, and as a sink."""
