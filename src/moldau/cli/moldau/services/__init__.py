"""`moldau registry` and `moldau rest`: HTTP services, from options or from a properties file."""
