"""Outputs that are late, foreign, or report a failure (B039, B040)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from integration import client
from integration.cluster import PATIENCE, Cluster
from integration.conftest import NewCluster
from interop import messages as wire
from interop.engine import Engine, Request


def make_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(1).start()
    cluster.start_engine(0, withhold=True)
    return cluster.wait_ready()


@contextmanager
def one_request(cluster: Cluster, stream: bool) -> Iterator[tuple[Engine, Request, client.Connection]]:
    """A request that the engine has and does not answer by itself."""
    engine = cluster.engines[0]
    count = len(engine.added)
    body = client.generate_body([1, 2, 3], 16, stream=stream)
    with client.open_post(cluster.port(), body) as connection:
        request = engine.wait_added(count + 1)
        try:
            yield engine, request, connection
        finally:
            engine.call(lambda: engine.requests.pop(request.id, None))


def orphans(cluster: Cluster) -> int:
    return cluster.status()["counters"]["orphan_outputs"]


def wait_orphans(cluster: Cluster, count: int) -> None:
    cluster.wait_status(
        "fe0", lambda status: status["counters"]["orphan_outputs"] >= count, f"{count} orphan outputs"
    )


def terminals(events: list[object]) -> list[object]:
    return [
        event
        for event in events
        if isinstance(event, dict) and ("error" in event or "finish_reason" in event["choices"][0])
    ]


def test_what_comes_after_the_final_output_is_counted_and_changes_nothing(shared_cluster: Cluster) -> None:
    before = orphans(shared_cluster)
    with one_request(shared_cluster, stream=True) as (engine, request, stream):
        final = engine.output(request, [5, 6], finish_reason=wire.FINISH_STOP)
        engine.send(1, [final])
        engine.send(1, [engine.output(request, [7])])
        engine.send(1, finished_requests=[request.id, "never-seen-00000000"])
        events = stream.events()
        assert events[-1] == client.DONE and len(terminals(events)) == 1
        assert events[0]["choices"][0]["token_ids"] == [5, 6]
        wait_orphans(shared_cluster, before + 1)
        stream.reset()
    shared_cluster.wait_idle()
    assert shared_cluster["fe0"].alive


def test_a_final_output_twice_in_one_message_ends_the_stream_once(shared_cluster: Cluster) -> None:
    with one_request(shared_cluster, stream=True) as (engine, request, stream):
        final = wire.EngineCoreOutput(request.id, [5], finish_reason=wire.FINISH_STOP, stop_reason="text")
        engine.send(1, [final, final], finished_requests=[request.id])
        events = stream.events()
        assert events[-1] == client.DONE and len(terminals(events)) == 1
    shared_cluster.wait_idle()


@pytest.mark.parametrize("stream", [False, True])
def test_a_final_output_may_be_named_as_finished_in_the_same_message(
    shared_cluster: Cluster, stream: bool
) -> None:
    with one_request(shared_cluster, stream=stream) as (engine, request, connection):
        final = engine.output(request, [5, 6], finish_reason=wire.FINISH_STOP)
        engine.send(1, [final], finished_requests=[request.id])
        answer = connection.whole()
        assert answer.status == 200
        choice = answer.events()[0]["choices"][0] if stream else answer.json()["choices"][0]
        assert (choice["token_ids"], choice["finish_reason"]) == ([5, 6], "stop")
    shared_cluster.wait_idle()


def test_a_request_that_is_only_named_as_finished_ends_with_an_error(shared_cluster: Cluster) -> None:
    with one_request(shared_cluster, stream=False) as (engine, request, connection):
        engine.send(1, finished_requests=[request.id])
        client.error_of(connection.whole(), 500, "request_stream_closed")
    shared_cluster.wait_idle()


def test_an_output_of_a_previous_life_is_aborted_once_a_second(shared_cluster: Cluster) -> None:
    engine = shared_cluster.engines[0]
    before = orphans(shared_cluster)
    for _ in range(3):
        engine.send(1, [wire.EngineCoreOutput("ghost-00000001", [1])])
    engine.wait_aborted("ghost-00000001")
    wait_orphans(shared_cluster, before + 3)
    # an answered request shows that whatever was sent before it has arrived
    engine.withhold(False)
    client.run([client.Job(shared_cluster.port(), [1], 4)])
    engine.withhold(True)
    assert engine.aborted.count("ghost-00000001") == 1


def test_an_engine_that_has_lost_an_abort_is_told_again_once_a_second(shared_cluster: Cluster) -> None:
    engine = shared_cluster.engines[0]
    with one_request(shared_cluster, stream=True) as (_, request, stream):
        stream.reset()
        engine.wait_aborted(request.id)
    before = orphans(shared_cluster)
    lines = len(shared_cluster["fe0"].lines)
    began = time.monotonic()
    sent = 0
    while engine.aborted.count(request.id) < 3:
        assert time.monotonic() - began < PATIENCE, "the ABORT is not repeated"
        engine.send(1, [engine.output(request, [5])])
        sent += 1
        time.sleep(0.005)  # the pace of an engine's steps
    took = time.monotonic() - began
    assert engine.aborted.count(request.id) <= 2 + took
    wait_orphans(shared_cluster, before + sent)
    assert len(shared_cluster["fe0"].lines) - lines <= 1 + took


def test_an_error_of_the_engine_is_a_500(shared_cluster: Cluster) -> None:
    with one_request(shared_cluster, stream=False) as (engine, request, connection):
        engine.send(1, [engine.output(request, [], finish_reason=wire.FINISH_ERROR)])
        client.error_of(connection.whole(), 500, "engine_request_error")
    shared_cluster.wait_idle()


def test_an_error_in_the_middle_of_a_stream_is_its_terminal_event(shared_cluster: Cluster) -> None:
    with one_request(shared_cluster, stream=True) as (engine, request, stream):
        engine.send(1, [engine.output(request, [5, 6])])
        assert stream.event()["choices"][0]["token_ids"] == [5, 6]
        engine.send(1, [engine.output(request, [], finish_reason=wire.FINISH_ERROR)])
        error, done = stream.events()
        assert error["error"]["code"] == "engine_request_error" and done == client.DONE
    shared_cluster.wait_idle()


def test_an_output_of_the_wrong_shape_does_no_harm_to_its_neighbour(shared_cluster: Cluster) -> None:
    with one_request(shared_cluster, stream=False) as (engine, request, connection):
        good = engine.output(request, [5, 6], finish_reason=wire.FINISH_STOP)
        faults = shared_cluster.faults("fe0", "output").get("Decode", 0)
        engine.send(1, [["other-00000001", "no tokens"], [7], good])
        assert connection.whole().json()["choices"][0]["token_ids"] == [5, 6]
        shared_cluster.wait_fault("fe0", "output", "Decode", faults + 2)
    shared_cluster.wait_idle()


def test_an_output_of_the_wrong_shape_fails_its_own_request(shared_cluster: Cluster) -> None:
    with one_request(shared_cluster, stream=False) as (engine, request, connection):
        engine.send(1, [[request.id, "no tokens"]])
        client.error_of(connection.whole(), 500, "decode")
    shared_cluster.wait_idle()


def test_outputs_that_cannot_be_read_at_all_end_what_may_have_been_in_them(shared_cluster: Cluster) -> None:
    with one_request(shared_cluster, stream=False) as (engine, request, connection):
        engine.send_raw("output:1", [b"\x91\x00\xc1"])
        client.error_of(connection.whole(), 500, "request_stream_closed")
        engine.wait_aborted(request.id)
    shared_cluster.wait_idle()


def test_outputs_of_more_frames_than_any_engine_sends_end_what_may_have_been_in_them(shared_cluster: Cluster) -> None:
    with one_request(shared_cluster, stream=False) as (engine, request, connection):
        engine.send(1, [engine.output(request, [6])], aux=[b""] * 65536)
        client.error_of(connection.whole(), 500, "request_stream_closed")
        engine.wait_aborted(request.id)
    shared_cluster.wait_idle()


def test_a_request_that_the_engine_aborts_ends_as_aborted(shared_cluster: Cluster) -> None:
    with one_request(shared_cluster, stream=True) as (engine, request, stream):
        engine.send(1, [engine.output(request, [5, 6])])
        engine.send(1, [engine.output(request, [], finish_reason=wire.FINISH_ABORT)])
        _, error, done = stream.events()
        assert error["error"]["code"] == "request_aborted" and done == client.DONE
    shared_cluster.wait_idle()


@pytest.mark.parametrize("aux", [False, True])
def test_tensors_are_passed_over(shared_cluster: Cluster, aux: bool) -> None:
    with one_request(shared_cluster, stream=False) as (engine, request, connection):
        frames: list[bytes] = []
        raw = msgspec.msgpack.Ext(3, bytes(8))
        if aux:
            frames = [bytes(8), bytes(8), bytes(4)]
        tensors = [
            ["<i4", [1, 2], 1 if aux else raw],
            ["<f4", [1, 2], 2 if aux else raw],
            ["<i4", [1], 3 if aux else msgspec.msgpack.Ext(3, bytes(4))],
            None,
        ]
        output = engine.output(request, [5], new_logprobs=tensors, finish_reason=wire.FINISH_STOP)
        engine.send(1, [output], aux=frames)
        assert connection.whole().json()["choices"][0]["token_ids"] == [5]
    shared_cluster.wait_idle()


@pytest.mark.parametrize("field", ["wave_complete", "start_wave"])
def test_wave_fields_are_on_the_wrong_path(shared_cluster: Cluster, field: str) -> None:
    before = shared_cluster.faults("fe0", "output").get("UnexpectedDispatcherOutput", 0)
    envelope: dict[str, Any] = {field: 1}
    shared_cluster.engines[0].send(1, **envelope)
    shared_cluster.wait_fault("fe0", "output", "UnexpectedDispatcherOutput", before + 1)


def test_outputs_on_the_coordinators_sockets_are_on_the_wrong_path(shared_cluster: Cluster) -> None:
    engine = shared_cluster.engines[0]
    output = wire.encode(wire.EngineCoreOutputs(0, [wire.EngineCoreOutput("r-00000001", [1])]))
    reply = wire.encode(wire.EngineCoreOutputs(0, utility_output=wire.UtilityOutput(1, None, [None, True])))
    for frame in (output, reply):
        engine.send_raw("stats", [frame])
    shared_cluster.wait_fault("coordinator", "engine_output", "UnexpectedCoordinatorOutput", 2)
    engine.send_raw("output:0", [output])
    shared_cluster.wait_status(
        "coordinator", lambda status: status["faults"].get("output"), "a fault of the slot"
    )
