"""Access to files: the `Disk` protocol, its POSIX implementation, and the cache of open files."""
