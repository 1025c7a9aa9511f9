"""`connect-mirror-maker`, and `moldau mirror` with status, failover and failback."""
