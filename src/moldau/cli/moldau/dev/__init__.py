"""`moldau dev`: one node or a cluster on this machine, without configuration."""
