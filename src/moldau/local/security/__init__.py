"""Security of clusters on one machine, made without external tools: certificates, users, configs."""
