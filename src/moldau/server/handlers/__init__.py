"""One file per API: authorise, validate, delegate, respond, in this order. The table: `dispatch/apis.py`."""
