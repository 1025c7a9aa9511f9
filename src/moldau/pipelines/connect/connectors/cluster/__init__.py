"""Another cluster as a source: MirrorMaker 2's connectors."""
