"""In what order things may start, and what is said while something is missing (B009, B105, B127)."""

import itertools
import re

import pytest
import zmq

from integration import client
from integration.cluster import Cluster, rank_states, wait_until
from integration.conftest import NewCluster
from integration.peer import Peer

PARTS = ("coordinator", "frontend", "engines")


def serves(cluster: Cluster, name: str = "fe0", count: int = 20) -> None:
    client.run([client.Job(cluster.port(name), [i, i + 1], 8, stream=i % 2 == 0) for i in range(count)])


@pytest.mark.parametrize("order", list(itertools.permutations(PARTS)), ids="-".join)
def test_any_start_order_comes_up(new_cluster: NewCluster, order: tuple[str, ...]) -> None:
    cluster = new_cluster(2)
    for part in order:
        if part == "coordinator":
            cluster.start_coordinator().http_port()  # it is up before the next one is started
        elif part == "frontend":
            cluster.start_frontend().http_port()
        else:
            cluster.start_fake_engines()
    cluster.wait_ready()
    serves(cluster)


def test_a_frontend_that_is_started_after_the_engines_serves_them(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2, {"fe0": "0-1", "late": "0-1"})
    cluster.start_coordinator()
    cluster.start_frontend("fe0")
    cluster.start_engines()
    cluster.wait_ready("fe0")
    serves(cluster, "fe0")
    cluster.start_frontend("late")
    cluster.wait_ready("late")
    serves(cluster, "late")


def test_a_restarted_frontend_serves_again_although_engines_never_register_twice(
    new_cluster: NewCluster,
) -> None:
    cluster = new_cluster(2, {"fe0": "0-1", "fe1": "0-1"}).start()
    cluster.start_engines()
    cluster.wait_ready()
    cluster["fe0"].kill()
    serves(cluster, "fe1")
    cluster.start_frontend("fe0")
    cluster.wait_ready("fe0")
    serves(cluster, "fe0")


def test_a_restarted_coordinator_learns_the_ranks_from_the_frontends(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2).start()
    cluster.start_engines()
    cluster.wait_ready()
    cluster["coordinator"].kill()
    serves(cluster)
    cluster.start_coordinator()
    cluster.wait_status(
        "coordinator",
        lambda status: rank_states(status) == {0: "ready", 1: "ready"},
        "both ranks ready again",
    )
    serves(cluster)


def test_nothing_is_sent_to_a_rank_that_is_not_ready(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    port = cluster.port()
    body = client.generate_body([1, 2, 3], 4)
    answer = client.post(port, body)
    error = client.error_of(answer, 503, "no_rank_ready")
    assert int(answer.headers["retry-after"]) >= 1 and error["type"] == "server_error"

    engine = cluster.start_engine(0, hold=["ready"])
    cluster.wait_status("coordinator", lambda status: rank_states(status) == {0: "hello"}, "rank 0 in HELLO")
    engine.wait_until(lambda: "broadcast" in engine.done, "READY broadcast")  # so it has registered
    client.error_of(client.post(port, body), 503, "no_rank_ready")
    client.error_of(client.post(port, body, [("X-data-parallel-rank", "0")]), 503, "no_rank_ready")
    for path, status in (("/health", 503), ("/readyz", 503), ("/livez", 200)):
        assert client.get(port, path).status == status, path

    engine.release("ready")
    cluster.wait_ready()
    for path in ("/health", "/readyz", "/livez"):
        assert client.get(port, path).status == 200, path
    serves(cluster, count=1)
    assert len(engine.added) == 1  # nothing of what was refused was sent after all


def test_a_rank_gets_no_requests_before_it_has_answered(new_cluster: NewCluster) -> None:
    """Its route is up, but nobody knows yet whether its outputs come."""
    cluster = new_cluster(1).start()
    engine = cluster.start_engine(0, hold=["registration"])
    engine.mute()
    engine.release("registration")
    cluster.wait_status("coordinator", lambda status: rank_states(status) == {0: "ready"}, "its READY")
    cluster.wait_status("fe0", lambda status: rank_states(status) == {0: "hello"}, "its registration")
    client.error_of(client.post(cluster.port(), client.generate_body([1], 4)), 503, "no_rank_ready")
    engine.mute(False)
    cluster.wait_ready()
    client.run([client.Job(cluster.port(), [1, 2, 3], 4)])


def test_health_is_good_while_one_rank_serves(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2).start()
    cluster.start_engine(1)
    cluster.wait_status("fe0", lambda status: rank_states(status)[1] == "ready", "rank 1 ready")
    assert client.get(cluster.port(), "/health").status == 200
    serves(cluster)


def test_a_lockstep_group_is_released_once_all_have_subscribed(new_cluster: NewCluster) -> None:
    cluster = new_cluster(3, lockstep=True).start()
    engines = cluster.start_engines(hold=["subscription"], config_hash="aaaa")
    for engine in engines:
        engine.wait_until(lambda: engine.phase == "init", "INIT")

    def broadcasts() -> list[int]:
        return [sum(record.frames == [b"READY"] for record in engine.received) for engine in engines]

    engines[0].release("subscription")
    engines[1].release("subscription")
    cluster.wait_status(
        "coordinator", lambda status: set(rank_states(status).values()) == {"hello"}, "three HELLOs"
    )
    with Peer(zmq.DEALER, cluster.address["handshake"], b"\x09\x00") as stranger:
        # by the time this is counted, a broadcast for the two would be on its way as well
        stranger.send(b"\xc0")
        wait_until(lambda: cluster.faults("coordinator", "handshake"), "fault")
    assert broadcasts() == [0, 0, 0]
    engines[2].release("subscription")
    for engine in engines:
        engine.wait_serving()
    cluster.wait_ready()
    assert broadcasts() == [1, 1, 1]
    assert (
        cluster.status("coordinator")["counters"]["engine_subscriptions"] == 3
    )  # none was swallowed as equal


def test_a_late_equal_subscription_gets_a_fresh_ready(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2).start()
    engines = cluster.start_engines()
    cluster.wait_ready()
    with Peer(zmq.XSUB, cluster.address["engine_publish"]) as late:
        late.send(b"\x01")
        assert late.receive() == [b"READY"]
    serves(cluster)
    for engine in engines:
        engine.check()


def test_independent_ranks_do_not_wait_for_each_other(new_cluster: NewCluster) -> None:
    cluster = new_cluster(3).start()
    for rank in (2, 0):
        cluster.start_engine(rank).wait_serving()
    cluster.wait_status(
        "fe0", lambda status: rank_states(status)[0] == rank_states(status)[2] == "ready", "two ranks"
    )
    assert rank_states(cluster.status("fe0"))[1] != "ready"
    serves(cluster)


def test_while_ranks_are_missing_the_log_and_the_status_name_them(new_cluster: NewCluster) -> None:
    cluster = new_cluster(3, timeouts={"waiting_log_ms": 200})
    coordinator = cluster.start_coordinator()
    cluster.start_engine(0).wait_serving()
    cluster.start_engine(1, hold=["registration"])
    text = r"1 loading \(HELLO \d+ s ago\), 2 not seen; listening on " + re.escape(
        cluster.address["handshake"]
    )
    coordinator.wait_log(f"waiting: {text}")
    cluster.wait_status(
        "coordinator", lambda status: re.search(text, status["waiting"] or ""), "the same text"
    )
    assert client.get(cluster.port("coordinator"), "/readyz").status == 503
    cluster.engines[1].release("registration")
    cluster.start_engine(2)
    cluster.wait_status("coordinator", lambda status: status["waiting"] is None, "an end of the waiting")
    assert client.get(cluster.port("coordinator"), "/readyz").status == 200
