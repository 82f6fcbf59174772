"""Logprobs of the tokens and of the prompt, from tensors of either library, inline or in frames of their own."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from integration import client
from integration.cluster import Cluster
from integration.conftest import NewCluster
from interop import messages as wire
from interop.engine import Engine
from interop.tensors import Row, row
from interop.tokens import expected

PROMPT = [11, 22, 33, 44, 55, 66, 77, 88]
WHERE: dict[str, dict[str, Any]] = {  # the options of an engine, one cluster each
    "numpy": {"tensor_names": "numpy"},
    "torch": {"tensor_names": "torch"},
    "numpy_frames": {"tensor_names": "numpy", "inline_below": 0},
    "torch_frames": {"tensor_names": "torch", "inline_below": 0},
    "older": {"older": True},
}


@pytest.fixture(scope="module", params=WHERE)
def served(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    cluster = Cluster(1).start()
    try:
        cluster.start_engine(0, tokens_per_step=3, **WHERE[request.param])
        yield cluster.wait_ready()
    finally:
        cluster.close()


def content(rows: list[Row], top: int) -> list[dict[str, Any]]:
    return [
        {
            "token": f"token_id:{row.ids[0]}",
            "logprob": max(row.values[0], -9999.0),
            "top_logprobs": [
                {"token": f"token_id:{token}", "logprob": value} for token, value in row.shown(top)
            ],
        }
        for row in rows
    ]


def rows_of(tokens: list[int], top: int) -> list[Row]:
    return [row(token, place, top, client.VOCAB_SIZE) for place, token in enumerate(tokens)]


def body(count: int, **fields: Any) -> dict[str, Any]:
    sampling = {"ignore_eos": True} | fields.pop("sampling", {})
    return client.generate_body(PROMPT, count, sampling=sampling, **fields)


@pytest.mark.parametrize("top", [0, 1, 5, 20])
def test_each_token_has_its_row(served: Cluster, top: int) -> None:
    answer = client.post(served.port(), body(20, sampling={"logprobs": top}))
    assert answer.status == 200, bytes(answer.body)
    choice = answer.json()["choices"][0]
    tokens = expected(PROMPT, 20, client.VOCAB_SIZE)[0]
    assert choice["token_ids"] == tokens
    assert choice["logprobs"] == {"content": content(rows_of(tokens, top), top)}


def test_in_a_stream_each_event_has_the_rows_of_its_tokens(served: Cluster) -> None:
    with client.open_post(served.port(), body(20, stream=True, sampling={"logprobs": 3})) as stream:
        choices = [event["choices"][0] for event in stream.events() if event != client.DONE]
    tokens = [token for choice in choices for token in choice["token_ids"]]
    assert tokens == expected(PROMPT, 20, client.VOCAB_SIZE)[0]
    rows = [entry for choice in choices for entry in choice["logprobs"]["content"]]
    assert rows == content(rows_of(tokens, 3), 3)
    assert all(len(choice["logprobs"]["content"]) == len(choice["token_ids"]) for choice in choices)


def test_the_prompt_has_a_row_for_each_token_but_the_first(served: Cluster) -> None:
    answer = client.post(served.port(), body(4, sampling={"prompt_logprobs": 4}))
    first, *rest = answer.json()["prompt_logprobs"]
    assert first is None
    for place, (entry, token) in enumerate(zip(rest, PROMPT[1:], strict=True), 1):
        wanted = row(token, place, 4, client.VOCAB_SIZE)
        shown = dict(wanted.shown(5))
        assert {int(key): value["logprob"] for key, value in entry.items()} == shown
        assert entry[str(token)] == {"logprob": shown[token], "rank": wanted.rank, "decoded_token": None}
        ranks = {wanted.ids[column]: column for column in range(len(wanted.ids) - 1, 0, -1)}
        assert all(value["rank"] == ranks[int(key)] for key, value in entry.items() if int(key) != token)


def test_given_ids_have_their_logprobs_beside_the_tokens(served: Cluster) -> None:
    answer = client.post(served.port(), body(4, sampling={"logprob_token_ids": [5, 6, 7]}))
    rows = answer.json()["choices"][0]["logprobs"]["content"]
    assert rows == content(rows_of(expected(PROMPT, 4, client.VOCAB_SIZE)[0], 3), 3)


def test_completions_have_them_in_openais_form(served: Cluster) -> None:
    fields = {"prompt": PROMPT, "max_tokens": 7, "logprobs": 2, "ignore_eos": True}
    answer = client.post(served.port(), fields, path=client.COMPLETIONS)
    choice = answer.json()["choices"][0]
    rows = rows_of(choice["token_ids"], 2)
    assert choice["logprobs"] == {
        "tokens": [f"token_id:{row.ids[0]}" for row in rows],
        "token_logprobs": [max(row.values[0], -9999.0) for row in rows],
        "top_logprobs": [{f"token_id:{token}": value for token, value in row.shown(2)} for row in rows],
        "text_offset": [0] * len(rows),
    }


# --- tensors that are wrong ---


def make_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(1).start()
    cluster.start_engine(0, withhold=True)
    return cluster.wait_ready()


def tensor(dtype: str, shape: list[int], data: bytes | int) -> list[Any]:
    return [dtype, shape, msgspec.msgpack.Ext(3, data) if isinstance(data, bytes) else data]


IDS, VALUES, RANKS = tensor("<i4", [1, 2], bytes(8)), tensor("<f4", [1, 2], bytes(8)), tensor("<i4", [1], bytes(4))
CODES = ("decode", "unsupported_aux_frames")
BAD_TENSORS: dict[str, Any] = {
    "missing": None,
    "no_array": "logprobs",
    "too_few": [IDS, VALUES],
    "no_tensor": [IDS, [1, 2], RANKS, None],
    "dtype": [tensor("<i2", [1, 2], bytes(4)), VALUES, RANKS, None],
    "float_ids": [tensor("<f4", [1, 2], bytes(8)), VALUES, RANKS, None],
    "int_values": [IDS, tensor("<i4", [1, 2], bytes(8)), RANKS, None],
    "shape": [tensor("<i4", [2], bytes(8)), VALUES, RANKS, None],
    "negative_shape": [tensor("<i4", [-1, -2], bytes(8)), VALUES, RANKS, None],
    "huge_shape": [tensor("<i4", [2**31 - 1, 2**31 - 1], bytes(8)), VALUES, RANKS, None],
    "no_columns": [tensor("<i4", [1, 0], b""), tensor("<f4", [1, 0], b""), RANKS, None],
    "bytes": [tensor("<i4", [1, 2], bytes(7)), VALUES, RANKS, None],
    "rows": [
        tensor("<i4", [2, 2], bytes(16)),
        tensor("<f4", [2, 2], bytes(16)),
        tensor("<i4", [2], bytes(8)),
        None,
    ],
    "frame_0": [tensor("<i4", [1, 2], 0), VALUES, RANKS, None],
    "frame_that_is_not_there": [tensor("<i4", [1, 2], 2), VALUES, RANKS, None],
    "extension": [["<i4", [1, 2], msgspec.msgpack.Ext(4, bytes(8))], VALUES, RANKS, None],
}


@pytest.mark.parametrize("name", BAD_TENSORS)
def test_a_wrong_tensor_fails_its_request_alone(shared_cluster: Cluster, name: str) -> None:
    engine: Engine = shared_cluster.engines[0]
    count = len(engine.added)
    with (
        client.open_post(shared_cluster.port(), body(1, sampling={"logprobs": 1})) as bad,
        client.open_post(shared_cluster.port(), body(1, sampling={"logprobs": 1})) as good,
    ):
        engine.wait_added(count + 2)
        broken, sound = engine.added[-2:]
        outputs = [
            wire.EngineCoreOutput(broken.id, [5], new_logprobs=BAD_TENSORS[name], finish_reason=1),
            wire.EngineCoreOutput(sound.id, [5], new_logprobs=[IDS, VALUES, RANKS, None], finish_reason=1),
        ]
        engine.call(lambda: [engine.requests.pop(request.id) for request in (broken, sound)])
        engine.send(1, outputs, aux=[bytes(8)])
        answers = bad.whole(), good.whole()
    if answers[0].status == 200:
        answers = answers[::-1]
    code = answers[0].json()["error"]["code"]
    assert (answers[0].status, code in CODES) == (500, True), code
    assert answers[1].status == 200
    shared_cluster.wait_idle()


def test_a_wrong_tensor_in_a_stream_ends_it_with_an_error_event(shared_cluster: Cluster) -> None:
    engine: Engine = shared_cluster.engines[0]
    count = len(engine.added)
    sound = [IDS, VALUES, RANKS, None]
    with client.open_post(shared_cluster.port(), body(8, stream=True, sampling={"logprobs": 1})) as stream:
        request = engine.wait_added(count + 1)
        engine.call(engine.requests.clear)
        engine.send(1, [wire.EngineCoreOutput(request.id, [5], new_logprobs=sound)])
        assert stream.event()["choices"][0]["token_ids"] == [5]
        engine.send(1, [wire.EngineCoreOutput(request.id, [6, 7], new_logprobs=sound)])  # one row, two tokens
        error, done = stream.events()
    assert error["error"]["code"] in CODES and done == client.DONE
    engine.wait_aborted(request.id)
    shared_cluster.wait_idle()


def test_logprobs_of_the_prompt_cannot_be_streamed(shared_cluster: Cluster) -> None:
    answer = client.post(shared_cluster.port(), body(4, stream=True, sampling={"prompt_logprobs": 1}))
    error = client.error_of(answer, 400, "invalid_request")
    assert error["param"] == "sampling_params.prompt_logprobs"


@pytest.mark.parametrize("field", ["logprobs", "prompt_logprobs"])
def test_more_logprobs_than_the_limit_are_refused(new_cluster: NewCluster, field: str) -> None:
    cluster = new_cluster(1, limits={"max_logprobs": 3}).start()
    cluster.start_engine(0)
    cluster.wait_ready()
    assert client.post(cluster.port(), body(2, sampling={field: 3})).status == 200
    error = client.error_of(client.post(cluster.port(), body(2, sampling={field: 4})), 400, "invalid_request")
    assert error["param"] == f"sampling_params.{field}" and "3" in error["message"]
