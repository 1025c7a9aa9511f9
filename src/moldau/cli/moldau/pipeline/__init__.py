"""`moldau pipeline`: run, inspect and stop pipelines."""
