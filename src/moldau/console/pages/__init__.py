"""The pages: one module for each entry of the navigation, with its actions."""
