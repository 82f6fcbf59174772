"""Independent ranks: one that dies takes nobody with it, and a forged sentinel marks nobody (B047, B050, B051)."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
import zmq

from integration import client
from integration.cluster import Cluster, rank_row, rank_states
from integration.conftest import NewCluster
from integration.peer import Peer
from interop import messages as wire
from interop.engine import Engine

RANKS = 4
STREAMS = 5  # of each rank
PIN = "X-data-parallel-rank"
READY = dict.fromkeys(range(RANKS), "ready")


def start(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(RANKS, {"fe0": "0-3", "fe1": "0-3"}).start()
    cluster.start_engines(withhold=True)
    return cluster.wait_ready()


def open_streams(cluster: Cluster, stack: ExitStack) -> dict[int, list[client.Connection]]:
    """Some for each rank, each of which has got its first token."""
    streams: dict[int, list[client.Connection]] = {}
    for engine in cluster.engines:
        for number in range(STREAMS):
            body = client.generate_body([engine.rank, number], 16, stream=True)
            stream = stack.enter_context(
                client.open_post(cluster.port(f"fe{number % 2}"), body, [(PIN, str(engine.rank))])
            )
            request = engine.wait_added(number + 1)
            engine.send(request.add.client_index, [engine.output(request, [request.tokens[0]])])
            assert len(stream.event()["choices"][0]["token_ids"]) == 1
            streams.setdefault(engine.rank, []).append(stream)
    return streams


def die(engine: Engine, cluster: Cluster, with_sentinel: bool) -> None:
    if with_sentinel:
        engine.send_sentinel()
        for name in cluster.frontends:
            cluster[name].wait_log("is dying")
    engine.close()
    cluster.engines.remove(engine)


@pytest.mark.parametrize("with_sentinel", [False, True])
def test_a_dead_rank_ends_its_own_streams_and_the_others_serve(
    new_cluster: NewCluster, with_sentinel: bool
) -> None:
    cluster = start(new_cluster)
    with ExitStack() as stack:
        streams = open_streams(cluster, stack)
        die(cluster.engines[2], cluster, with_sentinel)
        for stream in streams.pop(2):
            error, done = stream.events()
            assert done == client.DONE
            assert error["error"]["code"] == ("engine_core_dead" if with_sentinel else "dispatcher_closed")
            assert "rank 2" in error["error"]["message"]
        for name in (*cluster.frontends, "coordinator"):
            status = cluster.wait_status(name, lambda status: rank_states(status)[2] == "lost", "the loss")
            assert rank_states(status) == READY | {2: "lost"}
        for engine in cluster.engines:
            engine.withhold(False)
        for rank, others in streams.items():
            for number, stream in enumerate(others):
                *events, done = stream.events()
                ids = [token for event in events for token in event["choices"][0]["token_ids"]]
                engine = next(engine for engine in cluster.engines if engine.rank == rank)
                assert (len(ids), done) == (15, client.DONE), f"stream {number} of rank {rank}"
                assert ids == [engine.added[number].tokens[i] for i in range(1, 16)]
    for name in cluster.frontends:
        client.run([client.Job(cluster.port(name), [number, 7], 8) for number in range(20)])
        answer = client.post(cluster.port(name), client.generate_body([1], 4), [(PIN, "2")])
        client.error_of(answer, 503, "no_rank_ready")
        assert client.get(cluster.port(name), "/readyz").status == 200
        assert rank_row(cluster.status(name), 2)["in_flight"] == 0
    cluster.wait_idle()


def test_a_forged_sentinel_marks_nobody(new_cluster: NewCluster) -> None:
    cluster = start(new_cluster)
    with ExitStack() as stack:
        streams = open_streams(cluster, stack)
        with Peer(zmq.PUSH, cluster.address["fe0-output"]) as forger:
            for _ in range(100):
                forger.send(wire.SENTINEL)
            cluster["fe0"].wait_log("is dying")
            # the routes are looked at in the turn of the sentinel, so before any of this is served
            for engine in cluster.engines:
                engine.withhold(False)
            client.run([client.Job(cluster.port("fe0"), [number, 7], 8) for number in range(20)])
            for rank_streams in streams.values():
                for stream in rank_streams:
                    *events, done = stream.events()
                    assert events[-1]["choices"][0]["finish_reason"] == "length" and done == client.DONE
        assert rank_states(cluster.status("fe0")) == READY
        assert "state=lost" not in cluster["fe0"].log
        assert sum("is dying" in line for line in cluster["fe0"].lines) == 1, "said once"
        assert cluster.status("fe0")["counters"]["death_sentinels"] == 100
    cluster.wait_idle()
