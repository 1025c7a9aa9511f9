"""Node processes on one machine: ports, generated properties, the launcher, readiness, running nodes."""
