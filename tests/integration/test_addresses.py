"""Addresses of every form, in real processes: who meets whom, what is bound, and what is refused at the start, with the
address and the reason (B096, B097, B099, B100, B102, B110)."""

import os
import re
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from integration import client
from integration.cluster import Cluster, build_folder
from integration.conftest import NewCluster
from integration.proc import listens_on
from interop.engine import Engine

LOOPBACK = "tcp://127.0.0.1"
EXPOSED = "bound on every interface"


def link_local() -> str | None:
    """An address that means nothing without its interface, where this machine has one."""
    for line in Path("/proc/net/if_inet6").read_text().splitlines():
        number, _, _, scope, _, interface = line.split()
        if scope == "20":
            groups = ":".join(number[i : i + 4] for i in range(0, 32, 4))
            return f"tcp://[{groups}%{interface}]"
    return None


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


def rewrite(cluster: Cluster, change: Callable[[str], str]) -> Cluster:
    """Changes the file, and what the test believes of it. Before anything is started."""
    cluster.config.write_text(change(cluster.config.read_text()))
    cluster.address = {name: change(address) for name, address in cluster.address.items()}
    return cluster


def on_host(cluster: Cluster, host: str) -> Cluster:
    return rewrite(cluster, lambda text: text.replace(LOOPBACK, host))


def bound_at(cluster: Cluster, host: str) -> Cluster:
    """Peers are told the same as before, but every socket is bound at that host."""
    text = cluster.config.read_text()
    cluster.config.write_text(
        re.sub(r'(\w+) = "tcp://\S+:(\d+)";', rf'\g<0> \1_bind = "{host}:\2";', text)
    )
    return cluster


def serve(cluster: Cluster, handshake: str | None = None) -> Engine:
    """Starts everything, with an engine that dials that address, and has a request served."""
    cluster.start()
    engine = Engine(handshake or cluster.address["handshake"], 0).start()
    cluster.engines.append(engine)
    cluster.wait_ready()
    client.run([client.Job(cluster.port(), [1, 2, 3], 8)])
    return engine


def told(engine: Engine) -> set[str]:
    """Every address in its INIT."""
    assert engine.init
    addresses = engine.init.addresses
    found = {*addresses.inputs, *addresses.outputs, addresses.coordinator_input, addresses.coordinator_output}
    return {address for address in found if address}


def start_that_fails(cluster: Cluster, program: str = "wavegate-coordinator") -> tuple[int, str]:
    """Its exit code and its log."""
    command = [build_folder() / program, "-c", cluster.config]
    command += ["-n", "fe0"] if program == "wavegate-frontend" else []
    result = subprocess.run(command, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    return result.returncode, result.stderr


# --- forms ---


@needs_ipv6
@pytest.mark.parametrize("host", ["[::1]", "[0:0:0:0:0:0:0:1]"])
def test_a_cluster_meets_over_ipv6(new_cluster: NewCluster, host: str) -> None:
    engine = serve(on_host(new_cluster(1, tcp=True), f"tcp://{host}"))
    assert all(address.startswith(f"tcp://{host}:") for address in told(engine))


@pytest.mark.skipif(link_local() is None, reason="no interface of this machine has a link-local address")
def test_a_cluster_meets_at_an_address_of_one_interface(new_cluster: NewCluster) -> None:
    host = link_local()
    assert host
    engine = serve(on_host(new_cluster(1, tcp=True), host))
    assert all(address.startswith(f"{host}:") for address in told(engine))


@needs_ipv6
def test_a_socket_bound_on_every_ipv6_interface_is_met_over_ipv4_too(new_cluster: NewCluster) -> None:
    cluster = bound_at(on_host(new_cluster(1, tcp=True), "tcp://[::1]"), "tcp://[::]")
    handshake = cluster.address["handshake"].replace("[::1]", "127.0.0.1")
    engine = serve(cluster, handshake)
    assert all(address.startswith("tcp://[::1]:") for address in told(engine))


def test_localhost_is_a_number_on_both_sides(new_cluster: NewCluster) -> None:
    """Whichever family the machine knows the name for: nobody looks it up."""
    cluster = on_host(new_cluster(1, tcp=True), "tcp://localhost")
    engine = serve(cluster, cluster.address["handshake"].replace("localhost", "127.0.0.1"))
    assert all(address.startswith(f"{LOOPBACK}:") for address in told(engine))


# --- what is bound ---


def test_nothing_is_bound_but_the_addresses_of_the_file(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1, tcp=True)
    serve(cluster)
    expected: dict[str, set[str]] = {"coordinator": set(), "fe0": set()}
    for name, address in cluster.address.items():
        expected["fe0" if name.startswith("fe0") else "coordinator"].add(address.removeprefix("tcp://"))
    for name, addresses in expected.items():
        assert listens_on(cluster[name].pid) == addresses | {f"127.0.0.1:{cluster.port(name)}"}
        assert EXPOSED not in cluster[name].log


@pytest.mark.parametrize("wildcard", ["tcp://*", "tcp://0.0.0.0", pytest.param("tcp://[::]", marks=needs_ipv6)])
def test_a_wildcard_is_warned_of_once(new_cluster: NewCluster, wildcard: str) -> None:
    cluster = bound_at(new_cluster(1, tcp=True), wildcard)
    serve(cluster)
    for name, sockets in (
        ("coordinator", "handshake,engine_publish,engine_output,frontend_publish,control,input,output"),
        ("fe0", "input,output"),
    ):
        warnings = [line for line in cluster[name].lines if EXPOSED in line]
        assert len(warnings) == 1 and warnings[0].endswith(f"sockets={sockets}"), warnings


# --- what is taken ---


@pytest.mark.parametrize("tcp", [True, False], ids=["tcp", "ipc"])
@pytest.mark.parametrize("program", ["wavegate-coordinator", "wavegate-frontend"])
def test_a_second_process_at_one_address_ends_and_the_first_serves_on(
    new_cluster: NewCluster, program: str, tcp: bool
) -> None:
    cluster = new_cluster(1, tcp=tcp)
    serve(cluster)
    code, log = start_that_fails(cluster, program)
    prefix = "fe0-" if program == "wavegate-frontend" else ""
    mine = [address for name, address in cluster.address.items() if name.startswith("fe0-") == bool(prefix)]
    assert code == 1
    assert any(f"{address}: Address already in use" in log for address in mine), log
    client.run([client.Job(cluster.port(), [1, 2, 3], 8)])


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", pytest.param("[::1]", marks=needs_ipv6)])
@pytest.mark.parametrize("program", ["wavegate-coordinator", "wavegate-frontend"])
def test_a_taken_http_port_is_named(new_cluster: NewCluster, program: str, host: str) -> None:
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    with socket.socket(family) as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((host.strip("[]"), 0))
        other.listen()
        port = other.getsockname()[1]
        section = "frontends = (" if program == "wavegate-frontend" else "coordinator = {"
        cluster = new_cluster(1)
        before, after = cluster.config.read_text().split(section)
        after = after.replace('"127.0.0.1:0"', f'"{host}:{port}"', 1)
        cluster.config.write_text(before + section + after)
        code, log = start_that_fails(cluster, program)
    assert code == 1
    assert f"listen on http://{host}:{port}: Address already in use" in log


# --- what is refused ---


@pytest.mark.parametrize(
    ("address", "code", "reason"),
    [
        ("tcp://::1:5000", 2, "coordinator.handshake: put the IPv6 address in brackets: tcp://[::1]:5000"),
        ("tcp://127.0.0.1:0", 2, "coordinator.handshake: the port must be a number in [1, 65535]"),
        ("tcp://node1.invalid:5000", 1, "tcp://node1.invalid:5000: a host name cannot be bound"),
        ("tcp://203.0.113.7:5000", 1, "tcp://203.0.113.7:5000: Cannot assign requested address"),
        pytest.param(
            "tcp://[2001:db8::7]:5000",
            1,
            "tcp://[2001:db8::7]:5000: Cannot assign requested address",
            marks=needs_ipv6,
        ),
    ],
)
def test_an_address_that_cannot_be_bound_is_named_with_the_reason(
    new_cluster: NewCluster, address: str, code: int, reason: str
) -> None:
    cluster = new_cluster(1)
    rewrite(cluster, lambda text: text.replace(cluster.address["handshake"], address))
    found, log = start_that_fails(cluster)
    assert (found, reason in log) == (code, True), log


# --- ipc ---


def ipc_cluster(new_cluster: NewCluster, length: int) -> tuple[Cluster, Path]:
    """One whose handshake socket has a path of that length, in a folder that is not there yet."""
    cluster = new_cluster(1)
    folder = cluster.folder / "deep"
    path = folder / ("h" * (length - len(str(folder)) - 1))
    assert len(str(path)) == length
    old = cluster.address["handshake"]
    return rewrite(cluster, lambda text: text.replace(old, f"ipc://{path}")), path


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_ipc_path_of_107_bytes_is_met_in_a_folder_that_is_made_for_it(new_cluster: NewCluster) -> None:
    cluster, path = ipc_cluster(new_cluster, 107)
    old_mode = mode_of(cluster.folder)
    serve(cluster)
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert mode_of(path.parent) == 0o700
    assert mode_of(cluster.folder) == old_mode


def test_an_ipc_path_of_108_bytes_is_refused_with_length_and_limit(new_cluster: NewCluster) -> None:
    cluster, path = ipc_cluster(new_cluster, 108)
    code, log = start_that_fails(cluster)
    assert code == 2
    assert "coordinator.handshake: the ipc path has 108 bytes, the most are 107" in log
    assert not path.parent.exists()


def test_a_folder_whose_own_folder_is_missing_is_not_made(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1)
    old = cluster.address["handshake"]
    rewrite(cluster, lambda text: text.replace(old, f"ipc://{cluster.folder}/no/where/handshake"))
    code, log = start_that_fails(cluster)
    assert code == 1 and "/no/where/handshake: No such file or directory" in log


def put_file(path: Path) -> None:
    path.write_text("precious")


def put_link(path: Path) -> None:
    target = path.with_suffix(".target")
    target.write_text("precious")
    path.symlink_to(target)


@pytest.mark.parametrize("put", [put_file, put_link, Path.mkdir])
def test_what_is_no_socket_is_not_overwritten(new_cluster: NewCluster, put: Callable[[Path], None]) -> None:
    cluster = new_cluster(1)
    path = Path(cluster.address["handshake"].removeprefix("ipc://"))
    put(path)
    before = path.lstat()
    code, log = start_that_fails(cluster)
    assert code == 1 and f"ipc://{path}: something that is no socket is in its place" in log
    assert os.path.samestat(before, path.lstat())
    assert not path.is_file() or path.read_text() == "precious"


def sockets_of(cluster: Cluster) -> set[Path]:
    return {path for path in cluster.folder.iterdir() if stat.S_ISSOCK(path.stat().st_mode)}


def test_the_sockets_of_a_killed_process_are_replaced(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1)
    serve(cluster)
    all_sockets = sockets_of(cluster)
    assert len(all_sockets) == len(cluster.address)
    for name, start in (("coordinator", cluster.start_coordinator), ("fe0", cluster.start_frontend)):
        cluster[name].kill()
        assert sockets_of(cluster) == all_sockets
        start()
        cluster.wait_ready("coordinator", "fe0")  # else nobody would know the rank when the next one is killed
        client.run([client.Job(cluster.port(), [1, 2, 3], 8)])
