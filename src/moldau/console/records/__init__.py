"""Records of topics: reading, filtering, decoding, masking, writing, files."""
