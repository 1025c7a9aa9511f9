"""One file per API, named after it: the request, the response, and the structs nested in them.

Where request and response nest different structs of one name, these are called `Request…` and `Response…`.
"""
