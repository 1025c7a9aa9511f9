"""One file per API: authorise, validate, call one subsystem, shape the response. See `dispatch/apis.py`."""
