"""Instances of `moldau registry` as processes, and requests to them."""
