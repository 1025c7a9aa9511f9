"""Remote stores: the interface of plug-ins, and the built-in ones."""
