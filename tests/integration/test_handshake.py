"""What an engine is told when it dials, and who is refused (protocol.md 3; B007, B008, B011)."""

import re

import pytest
import zmq

from integration import client
from integration.cluster import Cluster, rank_row, rank_states
from integration.conftest import NewCluster
from integration.peer import Peer
from interop import messages as wire
from interop.tokens import expected

HELLO = wire.encode({"status": "HELLO", "local": False, "headless": True})
READY = wire.encode({"status": "READY", "local": False, "headless": True})


def dial(cluster: Cluster, identity: bytes | None) -> Peer:
    return Peer(zmq.DEALER, cluster.address["handshake"], identity)


def init_of(cluster: Cluster, rank: int, **options: object) -> wire.Init:
    engine = cluster.start_engine(rank, hold=["registration"], **options)
    engine.wait_until(lambda: engine.init, "INIT")
    assert engine.init
    return engine.init


def test_init_lists_the_coordinator_and_then_the_frontends_of_the_rank_in_config_order(
    new_cluster: NewCluster,
) -> None:
    cluster = new_cluster(4, {"fe0": "0-3", "fe1": "0,2"})
    cluster.start_coordinator()
    clients = {0: ["fe0-", "fe1-"], 1: ["fe0-"], 2: ["fe0-", "fe1-"], 3: ["fe0-"]}
    for rank, prefixes in clients.items():
        init = init_of(cluster, rank)
        assert init.parallel_config == {}
        for list_name, kind in (("inputs", "input"), ("outputs", "output")):
            wanted = [cluster.address[prefix + kind] for prefix in ["", *prefixes]]
            assert getattr(init.addresses, list_name) == wanted
        assert init.addresses.coordinator_input == cluster.address["engine_publish"]
        assert init.addresses.coordinator_output == cluster.address["engine_output"]
        assert init.addresses.frontend_stats_publish_address == cluster.address["frontend_publish"]


def test_a_lockstep_group_is_told_its_four_keys(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2, lockstep=True)
    cluster.start_coordinator()
    assert init_of(cluster, 1).parallel_config == {
        "data_parallel_master_ip": "127.0.0.1",
        "data_parallel_master_port": cluster.master_port,
        "_data_parallel_master_port_list": [cluster.master_port, cluster.master_port + 1],
        "data_parallel_size": 2,
    }


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("headless", [False, True])
def test_local_and_headless_decide_nothing(new_cluster: NewCluster, local: bool, headless: bool) -> None:
    cluster = new_cluster(1).start()
    engine = cluster.start_engine(0, local=local, headless=headless).wait_serving()
    cluster.wait_ready()
    client.run([client.Job(cluster.port(), [1, 2, 3], 8)])
    assert engine.init and len(engine.init.addresses.inputs) == 2


def test_without_stats_sockets_all_three_coordinator_addresses_are_nil_and_ranks_serve(
    new_cluster: NewCluster,
) -> None:
    cluster = new_cluster(2, stats_sockets=False).start()
    engines = cluster.start_engines(registration=None)
    cluster.wait_ready()
    for engine in engines:
        assert engine.init
        addresses = engine.init.addresses
        assert addresses.coordinator_input is addresses.coordinator_output is None
        assert addresses.frontend_stats_publish_address is None
    client.run([client.Job(cluster.port(), [i], 8) for i in range(20)])


REFUSALS = {
    "a_rank_outside_the_config": (b"\x09\x00", [HELLO], "UnexpectedHandshakeIdentity"),
    "a_rank_just_outside_the_config": (b"\x04\x00", [HELLO], "UnexpectedHandshakeIdentity"),
    "a_rank_of_the_other_byte_order": (b"\x00\x01", [HELLO], "UnexpectedHandshakeIdentity"),
    "an_id_of_one_byte": (b"\x01", [HELLO], "UnsupportedCoordinatorEngineId"),
    "an_id_of_three_bytes": (b"\x01\x00\x00", [HELLO], "UnsupportedCoordinatorEngineId"),
    "no_id_at_all": (None, [HELLO], "UnsupportedCoordinatorEngineId"),
    "ready_before_hello": (b"\x01\x00", [READY], "UnexpectedHandshakeMessage"),
    "a_payload_that_is_not_a_map": (b"\x01\x00", [wire.encode(["HELLO"])], "Decode"),
    "a_status_that_is_not_known": (b"\x01\x00", [wire.encode({"status": "BYE"})], "Decode"),
    "no_status": (b"\x01\x00", [wire.encode({"local": True})], "Decode"),
    "a_status_that_is_an_int": (b"\x01\x00", [wire.encode({"status": 1})], "Decode"),
    "a_truncated_hello": (b"\x01\x00", [HELLO[:-1]], "Decode"),
}


def make_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(4)
    cluster.start_coordinator()
    return cluster


@pytest.mark.parametrize("name", REFUSALS)
def test_a_wrong_hello_is_counted_and_gets_no_reply(shared_cluster: Cluster, name: str) -> None:
    identity, frames, cause = REFUSALS[name]
    before = shared_cluster.faults("coordinator", "handshake").get(cause, 0)
    with dial(shared_cluster, identity) as peer:
        peer.send(*frames)
        shared_cluster.wait_fault("coordinator", "handshake", cause, before + 1)
        assert peer.receive(0.05) is None
    assert rank_states(shared_cluster.status("coordinator"))[1] == "absent"


def test_a_fault_is_said_once_for_each_peer_and_counted_each_time(new_cluster: NewCluster) -> None:
    cluster = new_cluster(4)
    coordinator = cluster.start_coordinator()
    with dial(cluster, b"\x09\x00") as nine, dial(cluster, b"\x08\x00") as eight:
        for peer in (nine, nine, nine, eight, eight):
            peer.send(HELLO)
        cluster.wait_fault("coordinator", "handshake", "UnexpectedHandshakeIdentity", 5)
    said = [
        line for line in coordinator.lines if re.search("unexpected engine id in startup handshake", line)
    ]
    assert len(said) == 2, said


def test_a_second_hello_of_a_live_rank_is_refused_and_the_first_engine_stays(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2).start()
    engines = cluster.start_engines(withhold=True)
    cluster.wait_ready()
    body = client.generate_body([1, 2, 3], 64, stream=True, sampling={"ignore_eos": True})
    with client.open_post(cluster.port(), body, [("X-data-parallel-rank", "1")]) as stream:
        engines[1].wait_added()
        with dial(cluster, b"\x01\x00") as second:
            second.send(HELLO)
            cluster.wait_fault("coordinator", "handshake", "UnexpectedHandshakeMessage")
            assert second.receive(0.05) is None
        engines[1].withhold(False)
        tokens = [token for event in stream.events()[:-1] for token in event["choices"][0]["token_ids"]]
    assert tokens == expected([1, 2, 3], 64, client.VOCAB_SIZE)[0]
    assert rank_states(cluster.status("coordinator")) == {0: "ready", 1: "ready"}


def test_a_lockstep_rank_with_another_config_hash_does_not_become_ready(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2, lockstep=True)
    cluster.start_coordinator()
    cluster.start_engine(0, config_hash="aaaa", registration=wire.registration(0, 4096, data_parallel_size=2))
    other = cluster.start_engine(1, config_hash="bbbb", hold=["ready"])
    cluster.wait_status("coordinator", lambda status: rank_row(status, 0)["state"] == "ready", "rank 0 ready")
    other.release("ready")
    cluster.wait_fault("coordinator", "handshake", "UnexpectedHandshakeMessage")
    assert rank_states(cluster.status("coordinator")) == {0: "ready", 1: "hello"}
