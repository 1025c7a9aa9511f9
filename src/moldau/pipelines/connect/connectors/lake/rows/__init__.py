"""Records to Arrow columns: types, conversion of values, evolution of columns. Pure."""
