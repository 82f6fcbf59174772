"""The end of a frontend in good order: SIGTERM, lame duck, drain, exit 0."""

import signal
import time

import pytest

from integration import client
from integration.cluster import Cluster, wait_until
from integration.conftest import NewCluster
from interop import messages as wire
from interop.engine import Engine

PROMPT = [1, 2, 3]


def start(new_cluster: NewCluster, **timeouts: int) -> tuple[Cluster, Engine]:
    cluster = new_cluster(1, timeouts={"drain_ms": 20000} | timeouts).start()
    engine = cluster.start_engine(0, withhold=True)
    return cluster.wait_ready(), engine


def finish(engine: Engine) -> None:
    request = engine.added[-1]
    engine.call(engine.requests.clear)
    engine.send(1, [engine.output(request, [9], finish_reason=wire.FINISH_STOP)])


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_in_flight_finishes_and_then_the_process_ends(new_cluster: NewCluster, stream: bool) -> None:
    cluster, engine = start(new_cluster)
    frontend, port = cluster["fe0"], cluster.port()
    with client.open_post(port, client.generate_body(PROMPT, 8, stream=stream)) as running:
        engine.wait_added()
        frontend.signal(signal.SIGTERM)
        frontend.signal(signal.SIGTERM)  # changes nothing
        frontend.wait_log("stopping signal=SIGTERM")
        with pytest.raises(OSError):  # noqa: PT011 (refused, or reset while the listener closes)
            client.post(port, client.generate_body(PROMPT, 8))
        assert frontend.alive
        finish(engine)
        assert running.whole().status == 200
    assert frontend.wait_exit() == 0


def test_a_request_on_a_kept_connection_is_refused(new_cluster: NewCluster) -> None:
    cluster, engine = start(new_cluster)
    frontend, port = cluster["fe0"], cluster.port()
    with (
        client.Connection(port, client.request_bytes("GET", "/livez", None)) as kept,
        client.open_post(port, client.generate_body(PROMPT, 8)) as running,
    ):
        assert kept.whole().status == 200
        engine.wait_added()
        frontend.signal(signal.SIGTERM)
        frontend.wait_log("stopping")
        kept.answer = client.Answer()
        kept.socket.sendall(client.request_bytes("POST", client.GENERATE, b'{"token_ids":[1]}'))
        client.error_of(kept.whole(), 503, "draining")
        finish(engine)
        assert running.whole().status == 200
    assert frontend.wait_exit() == 0


def test_what_does_not_finish_in_time_is_ended_and_aborted(new_cluster: NewCluster) -> None:
    cluster, engine = start(new_cluster, drain_ms=300)
    frontend = cluster["fe0"]
    with client.open_post(cluster.port(), client.generate_body(PROMPT, 8, stream=True)) as running:
        request = engine.wait_added()
        engine.send(1, [engine.output(request, [5])])
        assert running.event()["choices"][0]["token_ids"] == [5]
        begun = time.monotonic()
        frontend.signal(signal.SIGTERM)
        error, done = running.events()
        assert time.monotonic() - begun >= 0.3
    assert (error["error"]["code"], done) == ("draining", client.DONE)
    engine.wait_aborted(request.id)
    assert frontend.wait_exit() == 0


def test_a_lame_duck_serves_but_says_that_it_is_not_ready(new_cluster: NewCluster) -> None:
    cluster, engine = start(new_cluster, lame_duck_ms=2000)
    engine.withhold(False)
    frontend, port = cluster["fe0"], cluster.port()
    frontend.signal(signal.SIGTERM)
    answer = wait_until(lambda: (found := client.get(port, "/readyz")).status == 503 and found, "unreadiness")
    assert answer.json()["reason"] == "this frontend is shutting down"
    assert client.post(port, client.generate_body(PROMPT, 8)).status == 200
    assert frontend.wait_exit() == 0


def test_an_idle_frontend_ends_at_once(new_cluster: NewCluster) -> None:
    cluster, _ = start(new_cluster)
    begun = time.monotonic()
    assert cluster["fe0"].terminate() == 0
    assert time.monotonic() - begun < 10


def test_the_second_interrupt_ends_it_now(new_cluster: NewCluster) -> None:
    cluster, engine = start(new_cluster)
    with client.open_post(cluster.port(), client.generate_body(PROMPT, 8)):
        engine.wait_added()
        cluster["fe0"].signal(signal.SIGINT)
        cluster["fe0"].wait_log("stopping signal=SIGINT")
        cluster["fe0"].signal(signal.SIGINT)
        assert cluster["fe0"].wait_exit() == 0


def test_a_signal_at_the_very_start_is_not_lost(new_cluster: NewCluster) -> None:
    cluster, _ = start(new_cluster)
    for delay in (0.0, 0.001, 0.005, 0.02):
        coordinator = new_cluster(1).start_coordinator()
        coordinator.may_end_with = {0, -signal.SIGTERM}  # before main begins nobody can do better
        time.sleep(delay)
        coordinator.signal(signal.SIGTERM)
        coordinator.wait_exit()
