"""KRaft consensus as a pure state machine: requests, responses and time in; effects out. No I/O, no clock."""
