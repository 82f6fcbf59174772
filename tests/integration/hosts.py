"""Several hosts on one machine: network namespaces on a bridge, whose links can be cut so that packets vanish. A
connection over one that is cut stays open at both ends, without FIN or reset, as when a host is gone.

    with Network("ab") as network, network.inside("a"):
        cluster.start_coordinator()                 # runs on host a, as every socket of this thread is opened there
        with network.inside("b"):
            cluster.start_fake_engines("1")         # on host b
        network.partition("b")

A host is on the network at `address(name)`, and has a loopback of its own. The namespaces, that of the bridge
too, have no names: they are held by descriptors and by the processes in them, so they end with these whatever
becomes of the test, and runs beside each other share nothing."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Self

from integration.cluster import Cluster

CLONE_NEWNET = 0x40000000
OWN = "/proc/thread-self/ns/net"
FIRST_PORT = 10000  # below those that outgoing connections are given

_libc = ctypes.CDLL(None, use_errno=True)


def missing() -> str | None:
    """Why this machine cannot have several hosts; None: it can."""
    if not shutil.which("ip"):
        return "there is no `ip` (Debian's iproute2)"
    try:
        Network("a").close()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"network namespaces need root: {error}"
    return None


class Network:
    """A host for every letter of `names`."""

    def __init__(self, names: str) -> None:
        self._names = names
        self._namespaces: dict[str, int] = {}
        with ExitStack() as undo:
            undo.callback(self.close)
            self._bridge = self._new_namespace("bridge")
            self._ip("bridge", "link", "add", "bridge", "type", "bridge")
            self._ip("bridge", "link", "set", "bridge", "up")
            for name in names:
                self._new_host(name)
            undo.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        while self._namespaces:
            os.close(self._namespaces.popitem()[1])

    def address(self, name: str) -> str:
        return f"10.0.0.{self._names.index(name) + 1}"

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """This thread is on that host meanwhile; sockets, threads and processes that it makes stay there."""
        with _back_again():
            _enter(self._namespaces[name])
            yield

    def partition(self, name: str) -> None:
        """From now on nothing reaches the host, and nothing leaves it. Neither side is told: its link stays up."""
        self._ip("bridge", "link", "set", f"port-{name}", "nomaster")

    def heal(self, name: str) -> None:
        self._ip("bridge", "link", "set", f"port-{name}", "master", "bridge")

    def place(self, cluster: Cluster, processes: dict[str, str]) -> None:
        """Rewrites the configuration before anything runs. processes: the host of the coordinator and of each
        frontend, by name."""
        text = cluster.config.read_text()
        for port, (name, address) in enumerate(cluster.address.items(), FIRST_PORT):
            host = processes[name.rpartition("-")[0] or "coordinator"]
            cluster.address[name] = f"tcp://{self.address(host)}:{port}"
            text = text.replace(f'"{address}"', f'"{cluster.address[name]}"')
        cluster.config.write_text(text)

    # --- inside ---

    def _new_namespace(self, name: str) -> int:
        with _back_again():
            _check(_libc.unshare(CLONE_NEWNET))
            self._namespaces[name] = os.open(OWN, os.O_RDONLY | os.O_CLOEXEC)
        self._ip(name, "link", "set", "lo", "up")
        return self._namespaces[name]

    def _new_host(self, name: str) -> None:
        namespace = f"/proc/{os.getpid()}/fd/{self._new_namespace(name)}"
        port = f"port-{name}"
        peer = ("peer", "name", "eth0", "netns", namespace)
        self._ip("bridge", "link", "add", port, "type", "veth", *peer)
        self._ip("bridge", "link", "set", port, "master", "bridge", "up")
        self._ip(name, "address", "add", f"{self.address(name)}/24", "dev", "eth0")
        self._ip(name, "link", "set", "eth0", "up")

    def _ip(self, name: str, *arguments: str) -> None:
        with self.inside(name):
            subprocess.run(["ip", *arguments], check=True)


@contextmanager
def _back_again() -> Iterator[None]:
    """Whatever namespace the thread enters meanwhile, it returns to its own."""
    before = os.open(OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        try:
            _enter(before)
        finally:
            os.close(before)


def _enter(namespace: int) -> None:
    _check(_libc.setns(namespace, CLONE_NEWNET))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
