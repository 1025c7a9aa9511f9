"""One file per API; the API table is `dispatch/apis.py`.

A handler has four steps, in this order: authorise the request, validate it, delegate, respond.
Authorisation comes before anything is read or changed; requests that the controller decides are authorised by
the node that decides them (`controller/authorization.py`). A module opens with its versions: what each one
added, what is not served, and which permissions the request requires. docs/SECURITY.md is made from these.
"""
