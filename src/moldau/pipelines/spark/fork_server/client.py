"""Stand-in for a Python process that the fork server forks; run as a script, without site and our package.

    python -I -S client.py SOCKET PYTHON -m pyspark.daemon pyspark.worker

It starts in a few milliseconds because it imports only built-in modules, hence `_socket`.
"""

import _socket
import os
import struct
import sys

#: The first byte of the server's answer if it has forked the process.
ACCEPTED = b"+"
#: The exit code if the server exits before the process does.
_SERVER_LOST = 1


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
    os._exit(code[0] if code else _SERVER_LOST)


def send(connection: _socket.socket, arguments: list[str]) -> None:
    """Send the standard files, the working directory, the arguments and the environment."""
    words = [os.getcwdb(), str(len(arguments)).encode(), *map(os.fsencode, arguments)]
    words += [name + b"=" + value for name, value in os.environb.items()]
    text = b"\0".join(words)
    files = struct.pack("3i", 0, 1, 2)
    connection.sendmsg([struct.pack("I", len(text))], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
    connection.sendall(text)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
