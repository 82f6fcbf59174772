"""Ports that stay a process's own while it is down. The system hands out the upper ones to outgoing connections: there,
one that knocks often enough at a dead port is given that very port, connects to itself, and keeps its owner out."""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Iterator
from pathlib import Path

from integration.cluster import Cluster

LOWEST = 10000


def low_ports() -> Iterator[int]:
    lowest_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = list(range(LOWEST, lowest_outgoing))
    random.SystemRandom().shuffle(ports)  # runs beside each other must not meet
    for port in ports:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        yield port


def give_ports(cluster: Cluster, tcp: bool) -> None:
    """Rewrites the configuration before anything runs: a fixed port for every listener, and ZMQ over TCP if wanted."""
    ports = low_ports()
    text = cluster.config.read_text()
    for name, address in cluster.address.items() if tcp else ():
        cluster.address[name] = f"tcp://127.0.0.1:{next(ports)}"
        text = text.replace(f'"{address}"', f'"{cluster.address[name]}"')
    text = re.sub(r'"127\.0\.0\.1:0"', lambda _: f'"127.0.0.1:{next(ports)}"', text)
    master = next(ports)
    ours = f"master_port = {master}; master_ports = [ {master} ]"
    text = re.sub(r"master_port = \d+; master_ports = \[.*?\]", ours, text)
    cluster.config.write_text(text)
