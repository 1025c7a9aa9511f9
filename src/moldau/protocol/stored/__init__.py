"""Records of files and internal topics, declared like wire messages."""
