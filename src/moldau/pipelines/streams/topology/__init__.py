"""The topology of a program: its graph of operators, its description, and its stages."""
