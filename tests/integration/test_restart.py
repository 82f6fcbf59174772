"""What a restart leaves behind: engines say only once that they are there, and to a life that is over."""

from __future__ import annotations

import signal
import time

import zmq

from integration import client
from integration.cluster import Cluster, rank_states, wait_until
from integration.conftest import NewCluster
from integration.peer import Peer
from interop import messages as wire

TIMEOUTS = {"heartbeat_interval_ms": 200, "heartbeat_timeout_ms": 1000, "wave_repeat_ms": 50}
FRONTENDS = {"fe0": "0-1", "fe1": "1"}


def serves(cluster: Cluster) -> None:
    """Every rank through every frontend."""
    jobs = [
        client.Job(cluster.port(name), [rank, 1], 4, headers=[("X-data-parallel-rank", str(rank))])
        for name, ranks in {"fe0": (0, 1), "fe1": (1,)}.items()
        for rank in ranks
    ]
    client.run(jobs)
    cluster.wait_idle()


def started(new_cluster: NewCluster, *, lockstep: bool = False) -> Cluster:
    cluster = new_cluster(2, FRONTENDS, lockstep=lockstep, timeouts=TIMEOUTS).start()
    for rank in range(2):
        cluster.start_fake_engines(str(rank))
    cluster.wait_ready()
    serves(cluster)
    return cluster


def restart_everything_but_the_engines(cluster: Cluster) -> None:
    for name in ("coordinator", *FRONTENDS):
        cluster[name].kill()
    cluster.start()
    cluster.wait_ready()


def test_independent_ranks_are_found_when_nobody_is_left_who_knew_them(new_cluster: NewCluster) -> None:
    cluster = started(new_cluster)
    restart_everything_but_the_engines(cluster)
    serves(cluster)


def test_a_lockstep_group_is_found_when_nobody_is_left_who_knew_it(new_cluster: NewCluster) -> None:
    cluster = started(new_cluster, lockstep=True)
    restart_everything_but_the_engines(cluster)
    serves(cluster)


def test_an_engine_that_was_lost_before_a_restart_and_goes_on_after_it_serves(new_cluster: NewCluster) -> None:
    cluster = started(new_cluster)
    cluster["engines 1"].signal(signal.SIGSTOP)
    for name in ("coordinator", *FRONTENDS):
        cluster.wait_status(name, lambda status: rank_states(status)[1] == "lost", "the loss")
    cluster["coordinator"].kill()
    cluster.start_coordinator()
    cluster.wait_status("fe0", lambda status: status["coordinator"]["joined"], "the new coordinator")
    cluster["engines 1"].signal(signal.SIGCONT)
    cluster.wait_ready()
    serves(cluster)
    longest = {rank["rank"]: rank["max_model_len"] for rank in cluster.status("coordinator")["ranks"]}
    assert longest[0] == longest[1] > 0  # the frontends still knew


def test_a_coordinator_restarted_while_a_rank_waits_at_the_gate_opens_it(new_cluster: NewCluster) -> None:
    cluster = started(new_cluster, lockstep=True)  # its wave is on file now, and taken to run after a restart
    for rank in range(2):
        cluster[f"engines {rank}"].kill()
    cluster.wait_status("coordinator", lambda status: "ready" not in rank_states(status).values(), "the loss")
    waiting = cluster.start_fake_engines("0")
    cluster.wait_status("coordinator", lambda status: status["counters"]["engine_subscriptions"] > 2, "its subscription")
    cluster["coordinator"].kill()
    cluster.start_coordinator()
    # a wake on the publish socket would end it: there it waits for its READY
    cluster.wait_status("coordinator", lambda status: status["wave_starts"] > 3, "wakes")
    assert waiting.alive
    cluster.start_fake_engines("1")
    cluster.wait_ready()
    serves(cluster)


def test_a_hello_that_died_with_the_coordinator_is_made_up_for(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2, FRONTENDS, timeouts=TIMEOUTS).start()
    with Peer(zmq.DEALER, cluster.address["handshake"], b"\x01\x00") as engine:
        engine.send(b"?")  # so that it is connected when the coordinator stops reading
        cluster.wait_fault("coordinator", "handshake", "Decode")
        cluster["coordinator"].signal(signal.SIGSTOP)
        engine.send(wire.encode({"status": "HELLO", "local": True, "headless": True}))
        cluster["coordinator"].kill()
        cluster.start_coordinator()
        (init,) = engine.receive()
    assert len(wire.decode_init(init).addresses.inputs) == 3  # the slot and both frontends
    cluster.wait_status("coordinator", lambda status: rank_states(status)[1] == "hello", "the engine that loads")


def test_requests_to_a_frontend_that_engines_gave_up_end(new_cluster: NewCluster) -> None:
    """It was stopped for so long that they closed their connections, and dial again while it goes on: what it sends into
    the old ones is lost."""
    cluster = started(new_cluster)
    for _ in range(2):
        cluster["fe0"].kill()
        frontend = cluster.start_frontend("fe0")
        cluster.wait_ready()  # and no engine has sent it anything yet
        frontend.signal(signal.SIGSTOP)
        begun = time.monotonic()
        body = client.generate_body([1, 2, 3], 4)
        waiting = [client.open_post(cluster.port(), body) for _ in range(20)]
        wait_until(lambda begun=begun: time.monotonic() - begun > 3.0, "the engines to give it up", 10.0)
        frontend.signal(signal.SIGCONT)
        for connection in waiting:
            with connection:
                answer = connection.whole()
                assert answer.status in (200, 500, 503)
                assert "choices" in answer.json() if answer.status == 200 else "error" in answer.json()
        cluster.wait_ready()
        cluster.wait_idle()
