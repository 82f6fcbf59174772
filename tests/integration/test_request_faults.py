"""Every wrong request: its HTTP status, the field and the reason, and nothing of it reaches an engine (B076)."""

import json
from typing import Any

import pytest

from integration import client
from integration.cluster import Cluster
from integration.conftest import NewCluster

PROMPT = [1, 2, 3]
LIMIT = 512
MAX_BODY = 64 * 1024


def make_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(1, limits={"max_body_bytes": MAX_BODY}).start()
    cluster.start_engine(0, max_model_len=LIMIT)
    return cluster.wait_ready()


@pytest.fixture(autouse=True)
def nothing_reaches_the_engine(shared_cluster: Cluster) -> Any:
    engine = shared_cluster.engines[0]
    count = len(engine.added)
    yield
    client.run([client.Job(shared_cluster.port(), PROMPT, 4)])  # the process lives and serves
    assert len(engine.added) == count + 1


def body(**fields: Any) -> dict[str, Any]:
    return {"token_ids": PROMPT} | fields


def sampling(**fields: Any) -> dict[str, Any]:
    return body(sampling_params=fields)


# name of the field at fault -> bodies
INVALID: dict[str, list[Any]] = {
    "token_ids": [
        {},
        body(token_ids=None),
        body(token_ids="1,2"),
        body(token_ids={"0": 1}),
        body(token_ids=7),
        body(token_ids=[1, "2"]),
        body(token_ids=[1, 2.5]),
        body(token_ids=[1, 2.0]),
        body(token_ids=[1, True]),
        body(token_ids=[1, None]),
        body(token_ids=[1, [2]]),
        body(token_ids=[1, -1]),
        body(token_ids=[client.VOCAB_SIZE]),
        body(token_ids=[2**31]),
        body(token_ids=[2**64]),
        body(token_ids=[]),
    ],
    "stream": [body(stream="true"), body(stream=1)],
    "stream_options": [body(stream=True, stream_options=[]), body(stream=True, stream_options=True)],
    "include_usage": [body(stream=True, stream_options={"include_usage": 1})],
    "request_id": [body(request_id=7), body(request_id="")],
    "model": [body(model=7)],
    "priority": [body(priority="0"), body(priority=1.5), body(priority=2**63), body(priority=True)],
    "cache_salt": [body(cache_salt=7)],
    "data_parallel_rank": [body(data_parallel_rank="x"), body(data_parallel_rank=0.5)],
    "sampling_params": [body(sampling_params=[]), body(sampling_params="hot"), body(sampling_params=1)],
    "temperature": [sampling(temperature=value) for value in (-0.1, 2.5, "1", True, [])],
    "top_p": [sampling(top_p=value) for value in (0, -0.5, 1.01, "1")],
    "top_k": [sampling(top_k=value) for value in (-2, 1.5, "4", 2**63)],
    "min_p": [sampling(min_p=value) for value in (-0.1, 1.1, "0")],
    "seed": [sampling(seed=value) for value in (1.5, "1", 2**63, -(2**63) - 1, True)],
    "max_tokens": [sampling(max_tokens=value) for value in (0, -1, 1.5, "5", True, LIMIT)],
    "min_tokens": [sampling(min_tokens=-1), sampling(min_tokens=5, max_tokens=4), sampling(min_tokens="1")],
    "presence_penalty": [sampling(presence_penalty=value) for value in (-2.1, 2.1, "0")],
    "frequency_penalty": [sampling(frequency_penalty=value) for value in (-2.1, 2.1, "0")],
    "repetition_penalty": [sampling(repetition_penalty=value) for value in (0, -1, "1")],
    "stop_token_ids": [
        sampling(stop_token_ids=value)
        for value in (5, "5", [1.5], ["5"], [-1], [client.VOCAB_SIZE], [True], [2**64])
    ],
    "ignore_eos": [sampling(ignore_eos=1), sampling(ignore_eos="yes")],
}


@pytest.mark.parametrize(
    ("field", "wrong"),
    [pytest.param(field, wrong, id=field) for field, bodies in INVALID.items() for wrong in bodies],
)
def test_a_wrong_field_is_named(shared_cluster: Cluster, field: str, wrong: Any) -> None:
    answer = client.post(shared_cluster.port(), wrong)
    code = "invalid_data_parallel_rank" if field == "data_parallel_rank" else "invalid_request"
    error = client.error_of(answer, 400, code)
    assert error["type"] == "invalid_request_error"
    if code == "invalid_request":
        assert field in error["param"] and field in error["message"], error


NOT_JSON: dict[str, bytes] = {
    "nothing": b"",
    "not_json": b"token_ids=1",
    "cut_short": b'{"token_ids": [1, 2',
    "an_array": b"[1, 2]",
    "a_string": b'"token_ids"',
    "null": b"null",
    "text_after_the_end": b'{"token_ids": [1]} {}',
    "a_key_twice": b'{"token_ids": [1], "token_ids": [2]}',
    "an_inner_key_twice": b'{"token_ids": [1], "sampling_params": {"seed": 1, "seed": 2}}',
    "not_utf8": b'{"token_ids": [1], "request_id": "\xff\xfe"}',
    "a_lone_surrogate": b'{"token_ids": [1], "request_id": "\\ud800"}',
    "nan": b'{"token_ids": [1], "sampling_params": {"temperature": NaN}}',
    "infinity": b'{"token_ids": [1], "sampling_params": {"temperature": 1e999}}',
    "a_nul_byte": b'{"token_ids": [1]\x00}',
    "a_comma_too_many": b'{"token_ids": [1,]}',
    "nested_deep": b'{"token_ids": ' + b"[" * 5000 + b"]" * 5000 + b"}",
}


@pytest.mark.parametrize("name", NOT_JSON)
def test_what_is_not_a_json_object_is_refused(shared_cluster: Cluster, name: str) -> None:
    error = client.error_of(client.post(shared_cluster.port(), NOT_JSON[name]), 400, "invalid_request")
    assert error["message"] and error["type"] == "invalid_request_error"


UNSUPPORTED = {
    "top_level": (body(colour="red"), "colour"),
    "misspelt": (body(token_idss=[1]), "token_idss"),
    "sampling": (sampling(temprature=1.0), "temprature"),
    "stream_options": (body(stream=True, stream_options={"usage": True}), "usage"),
    "of_another_api": (sampling(best_of=5), "best_of"),
    "needs_text": (sampling(stop=["end"]), "stop"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_a_field_that_is_not_known_is_refused_and_never_ignored(shared_cluster: Cluster, name: str) -> None:
    wrong, field = UNSUPPORTED[name]
    error = client.error_of(client.post(shared_cluster.port(), wrong), 400, "unsupported_field")
    assert f"`{field}`" in error["message"] and field in error["param"]


@pytest.mark.parametrize("size", [LIMIT, LIMIT + 1, 4 * LIMIT])
@pytest.mark.parametrize("given", [None, 1])
def test_a_prompt_that_leaves_no_room_is_refused_with_both_numbers(
    shared_cluster: Cluster, size: int, given: int | None
) -> None:
    answer = client.post(shared_cluster.port(), client.generate_body([1] * size, given))
    message = client.error_of(answer, 400, "invalid_request")["message"]
    assert str(size) in message and str(LIMIT) in message


def test_another_model_is_not_found(shared_cluster: Cluster) -> None:
    error = client.error_of(client.post(shared_cluster.port(), body(model="other")), 404, "model_not_found")
    assert "`other`" in error["message"]


def test_an_unknown_route_is_not_found(shared_cluster: Cluster) -> None:
    client.error_of(client.get(shared_cluster.port(), "/v2/nothing"), 404, "route_not_found")
    client.error_of(client.post(shared_cluster.port(), body(), path="/inference"), 404, "route_not_found")


def test_a_wrong_method_is_told_the_right_one(shared_cluster: Cluster) -> None:
    answer = client.get(shared_cluster.port(), client.GENERATE)
    client.error_of(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"


def test_a_wrong_content_type_is_refused(shared_cluster: Cluster) -> None:
    data = json.dumps(body()).encode()
    answer = client.post(shared_cluster.port(), data, [("Content-Type", "text/plain")])
    client.error_of(answer, 415, "unsupported_media_type")


def test_a_body_over_the_limit_is_refused_by_its_length(shared_cluster: Cluster) -> None:
    data = b'{"token_ids": [1' + b" " * MAX_BODY + b"]}"
    client.error_of(client.post(shared_cluster.port(), data), 413, "body_too_large")


def test_a_body_over_the_limit_is_refused_when_it_comes_in_chunks(shared_cluster: Cluster) -> None:
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    head = [("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")]
    data = client.request_bytes("POST", client.GENERATE, b"", head) + chunk * (MAX_BODY // 0x4000 + 1)
    with client.Connection(shared_cluster.port(), data) as connection:
        client.error_of(connection.whole(), 413, "body_too_large")


def test_a_body_just_under_the_limit_is_read(shared_cluster: Cluster) -> None:
    data = b'{"token_ids": [1' + b" " * (MAX_BODY - 18) + b"]x"
    assert len(data) == MAX_BODY
    client.error_of(client.post(shared_cluster.port(), data), 400, "invalid_request")


@pytest.mark.parametrize(
    "second", [("Transfer-Encoding", "chunked"), ("Content-Length", "20"), ("Content-Length", "3")]
)
def test_two_lengths_are_refused(shared_cluster: Cluster, second: tuple[str, str]) -> None:
    headers = [("Content-Length", "20"), second]
    assert client.call(shared_cluster.port(), "POST", client.GENERATE, b"0\r\n\r\n", headers).status == 400
