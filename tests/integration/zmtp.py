"""ZMTP 3 by hand, on a bare TCP socket: for peers that break off, lie about what they are, or about a length."""

import socket
import struct

PATIENCE = 20.0
NULL = b"NULL"
LONG = 0x02  # flags of a frame
COMMAND = 0x04


def connect(address: str) -> socket.socket:
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    return socket.create_connection((host, int(port)), PATIENCE)


def greeting(mechanism: bytes = NULL, version: int = 3) -> bytes:
    return b"\xff" + bytes(8) + b"\x7f" + bytes([version, 0]) + mechanism.ljust(20, b"\0") + bytes(32)


def ready(kind: bytes, identity: bytes = b"") -> bytes:
    """The command that ends the handshake: what the peer is."""
    properties = b"".join(
        bytes([len(name)]) + name + struct.pack(">I", len(value)) + value
        for name, value in ((b"Socket-Type", kind), (b"Identity", identity))
    )
    body = b"\x05READY" + properties
    return bytes([COMMAND, len(body)]) + body


def header(size: int, flags: int = 0) -> bytes:
    """Of a frame of that many bytes."""
    return struct.pack(">BQ", flags | LONG, size)


def is_closed_by_peer(connection: socket.socket) -> bool:
    """Reads until the peer closes, or until the connection's own timeout."""
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:  # a reset is an end, too
        pass
    return True
