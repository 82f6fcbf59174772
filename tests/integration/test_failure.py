"""What dies, and what must not die with it: each test was once a request that hung or a rank that stayed lost."""

from __future__ import annotations

import re

import zmq

from integration import client
from integration.cluster import Cluster, rank_states
from integration.conftest import NewCluster
from integration.peer import Peer
from interop import messages as wire


def serves(cluster: Cluster, name: str = "fe0") -> None:
    client.run([client.Job(cluster.port(name), [1, 2, 3], 4)])


def dial(cluster: Cluster) -> None:
    """Starts an engine, again if need be: until libzmq has seen the end of a connection, another one under the same
    identity is not heard."""
    for _ in range(20):
        engine = cluster.start_engine(0)
        try:
            engine.wait_until(lambda: engine.init, "INIT", timeout=1.0)
            return
        except AssertionError:
            engine.close()
            cluster.engines.remove(engine)
    raise AssertionError("no INIT after 20 engines")


def test_a_killed_engine_fails_its_own_requests_and_its_successor_serves(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2).start()
    engines = [cluster.start_fake_engines(str(rank), "--step-ms", "1000") for rank in (0, 1)]
    cluster.wait_ready()
    body = client.generate_body([1, 2, 3], 4, stream=True)
    with client.open_post(cluster.port(), body, [("X-data-parallel-rank", "0")]) as connection:
        cluster.wait_status("fe0", lambda status: status["ranks"][0]["in_flight"] == 1, "the request at rank 0")
        engines[0].kill()
        client.error_of(connection.whole(), 503, "dispatcher_closed")
    status = cluster.wait_status("fe0", lambda status: rank_states(status)[0] == "lost", "the loss")
    assert rank_states(status)[1] == "ready" and client.get(cluster.port(), "/health").status == 200
    cluster.start_fake_engines("0")
    cluster.wait_ready()
    answer = client.post(cluster.port(), client.generate_body([5], 4), [("X-data-parallel-rank", "0")])
    assert answer.status == 200
    cluster.wait_idle()


def test_an_engine_that_announces_its_death_is_named_in_the_error(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    engine = cluster.start_engine(0, withhold=True)
    cluster.wait_ready()
    with client.open_post(cluster.port(), client.generate_body([1, 2, 3], 4)) as connection:
        engine.wait_added()
        engine.send_sentinel()
        cluster["fe0"].wait_log("is dying")  # it comes over another connection than the loss
        engine.close()
        cluster.engines.remove(engine)
        client.error_of(connection.whole(), 503, "engine_core_dead")


def test_a_coordinator_restarted_while_an_engine_loads_still_gets_it_ready(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    engine = cluster.start_engine(0, hold=["registration", "subscription", "ready"])
    engine.wait_until(lambda: engine.phase == "init", "INIT")
    cluster["coordinator"].kill()
    cluster.start_coordinator()
    found = "0 connected, and not heard of since a restart"
    cluster.wait_status("coordinator", lambda status: found in (status["waiting"] or ""), "the engine that loads")
    for step in ("registration", "subscription", "ready"):
        engine.release(step)
    cluster.wait_ready()
    serves(cluster)


def test_a_ready_that_was_lost_with_its_connection_is_made_up_for(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    engine = cluster.start_engine(0, hold=["ready"])
    engine.wait_until(lambda: "registration" in engine.done, "registration")
    engine.lose_ready()
    cluster.wait_ready()
    serves(cluster)


def test_a_rank_that_was_never_reached_can_be_replaced(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    with Peer(zmq.DEALER, cluster.address["handshake"], b"\x00\x00") as stray:
        stray.send(wire.encode({"status": "HELLO", "local": True, "headless": True}))
        assert stray.receive()
        stray.send(wire.encode({"status": "READY", "local": True, "headless": True}))
        cluster.wait_status("coordinator", lambda status: rank_states(status) == {0: "ready"}, "its READY")
    dial(cluster)
    cluster.wait_ready()
    serves(cluster)


def test_a_broken_output_connection_ends_what_was_on_its_way(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    engine = cluster.start_engine(0, withhold=True)
    cluster.wait_ready()
    with client.open_post(cluster.port(), client.generate_body([1, 2, 3], 16, stream=True)) as connection:
        request = engine.wait_added()
        engine.send(1, [engine.output(request, [5, 6])])
        assert connection.event()["choices"][0]["token_ids"] == [5, 6]
        engine.redial_output(1)  # the engine itself lives, and goes on over a new connection
        engine.send(1, [engine.output(request, [9], finish_reason=wire.FINISH_STOP)])  # what came before it is lost
        error, done = connection.events()
        assert error["error"]["code"] == "request_stream_closed" and done == client.DONE
    engine.wait_aborted(request.id)
    cluster.wait_ready()  # as soon as the engine has answered over the new connection


def test_a_stream_that_is_shorter_than_the_engine_says_is_no_success(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    engine = cluster.start_engine(0, withhold=True)
    cluster.wait_ready()
    with client.open_post(cluster.port(), client.generate_body([1, 2, 3], 16)) as connection:
        request = engine.wait_added()
        engine.send(1, [engine.output(request, [5, 6], finish_reason=wire.FINISH_LENGTH)])
        client.error_of(connection.whole(), 500, "request_stream_closed")
    cluster.wait_idle()


def test_more_tokens_than_were_asked_for_end_the_request(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    engine = cluster.start_engine(0, withhold=True)
    cluster.wait_ready()
    with client.open_post(cluster.port(), client.generate_body([1, 2, 3], 4)) as connection:
        request = engine.wait_added()
        engine.send(1, [engine.output(request, [5, 6, 7, 8, 9])])
        client.error_of(connection.whole(), 500, "request_stream_closed")
    engine.wait_aborted(request.id)


def test_a_frontend_with_another_configuration_never_serves(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1, {"fe0": "0", "fe1": "0"})
    cluster.start_coordinator().http_port()  # it has read the file
    text = cluster.config.read_text()
    swapped = re.sub(r"(?s)(  \{ name = \"fe0\".*?\}),\n(  \{ name = \"fe1\".*?\})", r"\2,\n\1", text)
    assert swapped != text
    cluster.config.write_text(swapped)
    cluster.start_frontend("fe0")
    cluster.wait_fault("fe0", "control", "ControlClosed")
    cluster.start_engine(0)
    reason = client.get(cluster.port(), "/readyz").json()["reason"]
    assert "configuration file differs" in reason
    cluster["coordinator"].kill()
    cluster.wait_status("fe0", lambda status: not status["coordinator"]["joined"], "the coordinator's silence")
    client.error_of(client.post(cluster.port(), client.generate_body([1], 4)), 503, "control_closed")
