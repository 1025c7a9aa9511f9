"""Suites of other projects: the integration tests that client libraries ship, run against Moldau.

`catalog.py` names the suites; each has a module that downloads and builds its package and runs a test.
`listing.py` is the committed list `<suite>.txt`: every test with its result on Moldau and on Apache Kafka,
run the same way. `runner.py` runs and compares: a test that passed once must continue to pass.
`python -m tests.interop.suites` runs single tests and writes the lists.
"""
