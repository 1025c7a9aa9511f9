"""Access control: operations and resources, ACL bindings, the authorizer."""
