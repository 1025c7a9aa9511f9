"""One file per API: authorise, validate, call one subsystem, shape the response. See `server/apis.py`."""
