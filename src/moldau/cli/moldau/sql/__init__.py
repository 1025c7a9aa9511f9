"""`moldau sql`: SQL over topics, at a prompt or from a script."""
