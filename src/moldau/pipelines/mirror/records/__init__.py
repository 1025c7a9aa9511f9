"""Record formats of MirrorMaker 2's internal topics. Pure."""
