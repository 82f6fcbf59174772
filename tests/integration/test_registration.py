"""The ready response differs between versions: every key is optional (protocol.md 4; B005)."""

from typing import Any

import pytest

from integration import client
from integration.cluster import Cluster, rank_row
from integration.conftest import NewCluster
from interop import messages as wire

NESTED = {"publisher": "zmq", "endpoints": ["tcp://h:1", {"retry": [1, 2.5, None]}], "on": True}
EXTRA = {f"future_{i}": NESTED if i % 2 else i for i in range(10)}

REGISTRATIONS: dict[str, Any] = {
    "two_keys": ({"max_model_len": 4096, "num_gpu_blocks": 512}, 4096, None),
    "all_keys": (wire.registration(0, 4096), 4096, "0.15.0"),
    "ten_more_keys": (wire.registration(0, 4096, kv_events_config=NESTED) | EXTRA, 4096, "0.15.0"),
    "an_empty_map": ({}, None, None),
    "an_empty_frame": (b"", None, None),
    "no_version": (wire.registration(0, 4096, vllm_version=""), 4096, None),
}


@pytest.mark.parametrize("name", REGISTRATIONS)
def test_a_registration_with_few_or_many_keys_is_accepted(new_cluster: NewCluster, name: str) -> None:
    registration, max_model_len, version = REGISTRATIONS[name]
    payload = registration if isinstance(registration, bytes) else wire.encode(registration)
    cluster = new_cluster(1).start()
    cluster.start_engine(0, registration=payload)
    cluster.wait_ready()
    client.run([client.Job(cluster.port(), [1, 2, 3], 8)])
    for process in ("fe0", "coordinator"):
        row = rank_row(cluster.status(process), 0)
        assert (row["max_model_len"], row["vllm_version"]) == (max_model_len, version), process


def two_limits(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(2).start()
    cluster.start_engine(0, max_model_len=64)
    cluster.start_engine(1, max_model_len=128)
    return cluster.wait_ready()


def test_the_smallest_limit_of_the_ranks_is_the_limit(new_cluster: NewCluster) -> None:
    cluster = two_limits(new_cluster)
    for size in (64, 65, 128):
        error = client.error_of(
            client.post(cluster.port(), client.generate_body([1] * size, 1)), 400, "invalid_request"
        )
        assert str(size) in error["message"] and "64" in error["message"]
    answer = client.post(cluster.port(), client.generate_body([1] * 60))
    assert answer.json()["usage"]["completion_tokens"] == 4


def test_a_malformed_registration_is_counted_and_others_serve_on(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2).start()
    cluster.start_engine(0)
    cluster.start_engine(1, registration=wire.encode({"max_model_len": "many"}))
    cluster.wait_fault("fe0", "input", "Decode")
    cluster.wait_fault("coordinator", "input", "Decode")
    cluster.wait_status("fe0", lambda status: rank_row(status, 0)["state"] == "ready", "rank 0 ready")
    client.run(
        [client.Job(cluster.port(), [i], 8, headers=[("X-data-parallel-rank", "0")]) for i in range(10)]
    )
