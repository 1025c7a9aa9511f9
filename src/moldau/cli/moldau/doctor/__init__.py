"""`moldau doctor`: find out why a client cannot connect."""
