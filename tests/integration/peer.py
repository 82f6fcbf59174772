"""A bare ZMQ peer: for what no engine and no frontend would send."""

from contextlib import suppress
from typing import Any

import zmq


class Peer:
    """Connects one socket, sends and receives whole messages, and leaves nothing behind."""

    def __init__(self, kind: int, address: str, identity: bytes | None = None) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(kind)
        if identity is not None:
            self._socket.setsockopt(zmq.IDENTITY, identity)
        if kind == zmq.SUB:
            self._socket.setsockopt(zmq.SUBSCRIBE, b"")
        self._socket.setsockopt(zmq.SNDTIMEO, 20000)
        self._socket.connect(address)

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: Any) -> None:
        self._context.destroy(linger=0)

    def send(self, *frames: bytes) -> None:
        self._socket.send_multipart(frames)

    def offer(self, *frames: bytes) -> None:
        """Sends if there is anybody to send to."""
        with suppress(zmq.Again):
            self._socket.send_multipart(frames, zmq.NOBLOCK)

    def receive(self, timeout: float = 20.0) -> list[bytes] | None:
        """The next message, or None if there is none within the time."""
        return self._socket.recv_multipart() if self._socket.poll(int(timeout * 1000)) else None
