"""Everything around the copy of a flow: topics, configs, ACLs, heartbeats, checkpoints, group offsets."""
