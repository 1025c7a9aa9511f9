"""Measures the web console: the time of every page, memory, CPU, and searches through a large topic."""
