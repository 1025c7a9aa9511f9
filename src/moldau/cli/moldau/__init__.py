"""The commands of `moldau` itself: dev, server, doctor, sql, pipeline, protocol."""
