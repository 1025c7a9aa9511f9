"""Other people's suites: the integration tests that client projects ship, run against Moldau.

`catalog.py` names the suites; each has a module that gets and builds its package and says how one test of it
is run. `listing.py` is the committed list `<suite>.txt`: every test with its result on Moldau and on Apache
Kafka, run the same way. `runner.py` runs and compares: a test that passed once must go on passing.
`python -m tests.interop.suites` runs single tests and writes the lists.
"""
