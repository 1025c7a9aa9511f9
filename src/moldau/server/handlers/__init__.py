"""One file per API; the API table is `dispatch/apis.py`.

A handler has four steps, in this order: authorise the request, validate it, delegate, respond.
Authorisation is the first statement of `handle`, before anything is read or changed; there is no authorizer
yet. A module opens with its versions: what each one added, and what is not served.
"""
