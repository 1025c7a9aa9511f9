"""The topic of the registry (`_schemas`): reading, fenced writing, election, forwarding."""
