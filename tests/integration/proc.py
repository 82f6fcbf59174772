"""What the kernel says of a process: its descriptors, and where it listens."""

import ipaddress
import os
from pathlib import Path


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def listens_on(pid: int) -> set[str]:
    """The TCP addresses that it listens on, as in 127.0.0.1:80 and [::1]:80."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(os.readlink(entry))
        except FileNotFoundError:
            pass  # closed meanwhile
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in inodes:
                found.add(_shown(local))
    return found


def _shown(local: str) -> str:
    host, _, port = local.partition(":")
    # 32 bits at a time, each in the machine's own order
    words = [int(host[i : i + 8], 16).to_bytes(4, "little") for i in range(0, len(host), 8)]
    address = ipaddress.ip_address(b"".join(words))
    shown = f"[{address}]" if address.version == 6 else str(address)
    return f"{shown}:{int(port, 16)}"
