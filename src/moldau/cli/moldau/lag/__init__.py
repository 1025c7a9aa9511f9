"""`moldau lag`: the lag of groups as a table, as JSON, or over HTTP."""
