"""The cluster's state as data: records, the image they add up to, the delta between two images. Pure."""
