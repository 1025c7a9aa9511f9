"""Mirroring: `connect-mirror-maker` beside Apache's MirrorMaker 2."""
