"""Before a node runs: formatting and checking its folders, its identity."""
