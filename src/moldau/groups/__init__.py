"""The group coordinator as pure shards: groups, their members and their committed offsets."""
