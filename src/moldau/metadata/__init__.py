"""The cluster metadata as data: records, images and the deltas between them. Pure."""
