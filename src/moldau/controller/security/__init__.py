"""Decisions about who may log in and what they may do: ACLs, SCRAM credentials, delegation tokens."""
