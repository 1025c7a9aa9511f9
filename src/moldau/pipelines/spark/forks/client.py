"""Stands for a Python process that the fork server makes; run as a script, without site or our package.

    python -I -S client.py SOCKET PYTHON -m pyspark.daemon pyspark.worker

It starts in a few milliseconds because it imports nothing but built-in modules; hence the bare `_socket`.
"""

import _socket
import os
import struct
import sys

#: How the server begins its answer.
ACCEPTED = b"+"
#: Exit code of a process whose server went away.
_LOST = 1


def main(address: str, python: str, arguments: list[str]) -> None:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(address)
        send(connection, arguments)
        accepted = connection.recv(1) == ACCEPTED
    except OSError:
        accepted = False
    if not accepted:
        os.execv(python, [python, *arguments])
    code = connection.recv(1)
    os._exit(code[0] if code else _LOST)


def send(connection: _socket.socket, arguments: list[str]) -> None:
    """Our standard files, and all that makes a process: folder, arguments, environment."""
    words = [os.getcwdb(), str(len(arguments)).encode(), *map(os.fsencode, arguments)]
    words += [name + b"=" + value for name, value in os.environb.items()]
    text = b"\0".join(words)
    files = struct.pack("3i", 0, 1, 2)
    connection.sendmsg([struct.pack("I", len(text))], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
    connection.sendall(text)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
