"""wavegate-bench, the load generator: what it says of a healthy cluster, and that it sees what is wrong."""

import json
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from integration import client
from integration.cluster import BAD_WORDS, Cluster, build_folder
from integration.conftest import NewCluster
from interop.tokens import expected

PHASES = {"connecting", "after_request", "after_first_event", "in_the_middle"}


def make_cluster(new_cluster: NewCluster) -> Cluster:
    cluster = new_cluster(4, {"fe0": "0-3", "fe1": "0,2"}).start()
    cluster.start_fake_engines("0-3", "--step-ms", "2", "--max-num-seqs", "1000")
    return cluster.wait_ready()


def command(urls: list[int], *options: str | int | float) -> list[str]:
    program = build_folder() / "tests/wavegate-bench"
    targets = [part for port in urls for part in ("--url", f"http://127.0.0.1:{port}")]
    return [str(program), *targets, "--json", *map(str, options)]


def run_bench(
    urls: list[int], *options: str | int | float, exit_status: int = 0
) -> tuple[dict[str, Any], str]:
    """Its report, and its standard error."""
    done = subprocess.run(command(urls, *options), capture_output=True, text=True, timeout=120)
    assert not BAD_WORDS.search(done.stderr), done.stderr
    assert done.returncode == exit_status, done.stderr
    return json.loads(done.stdout), done.stderr


def ports(cluster: Cluster) -> list[int]:
    return [cluster.port(name) for name in cluster.frontends]


def total(counts: Any) -> int:
    return sum(map(total, counts.values())) if isinstance(counts, dict) else int(counts)


def assert_times(times: dict[str, float], count: int) -> None:
    assert times["count"] == count
    assert 0 <= times["median"] <= times["p99"] <= times["max"]


def test_every_token_of_streams_that_nobody_disturbs_is_right(shared_cluster: Cluster) -> None:
    report, _ = run_bench(
        ports(shared_cluster), *("--streams", 20, "--requests", 200, "--max-tokens", 8, "--check")
    )
    assert report["requests"] == report["ends"]["ok"] == total(report["ends"]) == 200
    assert report["tokens"] == 200 * 8
    assert report["wrong_tokens"] == report["stray_bytes"] == 0
    assert 1 < report["most_in_flight"] <= 20
    assert report["connections"] <= 20, "a stream keeps its connection"
    assert_times(report["first_token_ms"], 200)
    assert report["gap_ms"]["count"] <= 200 * 7  # fewer where tokens came as one event
    assert_times(report["request_ms"], 200)
    assert report["requests_per_s"] > 0 and report["tokens_per_s"] > report["requests_per_s"]
    shared_cluster.wait_idle()


def test_five_hundred_streams_of_which_some_are_dropped_and_some_slow(shared_cluster: Cluster) -> None:
    report, _ = run_bench(
        ports(shared_cluster),
        *("--streams", 500, "--requests", 2000, "--max-tokens", 32, "--drop", 0.3, "--slow", 0.05, "--check"),
    )
    ends = report["ends"]
    assert report["requests"] == total(ends) == 2000
    assert 50 < report["most_in_flight"] <= 500  # a busy machine answers the first before the last have begun
    assert {*ends["dropped"]} == PHASES
    assert ends["ok"] + total(ends["dropped"]) == 2000, ends
    # About three in ten; but on a busy machine many a stream ends before the event at which it is to be dropped.
    before_an_answer = ends["dropped"]["connecting"] + ends["dropped"]["after_request"]
    assert 250 < before_an_answer < total(ends["dropped"]) <= 700
    assert report["wrong_tokens"] == 0
    shared_cluster.wait_idle()


def test_the_open_loop_sends_all_its_requests_whole_or_as_streams(shared_cluster: Cluster) -> None:
    for form in ([], ["--no-stream"]):
        report, _ = run_bench(
            ports(shared_cluster),
            *("--rate", 2000, "--requests", 500, "--max-tokens", 4, "--prompt-tokens", 100, "--check", *form),
        )
        assert report["ends"]["ok"] == report["requests"] == 500
        assert report["tokens"] == 2000
        assert (report["first_token_ms"] is None) == bool(form), "of a whole answer there is no first token"
    shared_cluster.wait_idle()


def test_the_same_seed_sends_the_same_requests(shared_cluster: Cluster) -> None:
    options = ("--streams", 1, "--requests", 100, "--max-tokens", 8, "--no-stream", "--drop", 0.5)
    first, again, other = (
        run_bench([shared_cluster.port()], *options, "--seed", seed)[0]["ends"] for seed in (7, 7, 8)
    )
    assert first == again != other
    shared_cluster.wait_idle()


def test_refusals_are_counted_by_status_and_code_and_are_no_failure(shared_cluster: Cluster) -> None:
    report, _ = run_bench([shared_cluster.port()], "--streams", 2, "--requests", 4, "--max-tokens", 5000)
    assert report["ends"]["http"] == {"400": {"invalid_request": 4}}


def test_a_failure_in_a_stream_is_counted_by_its_code(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    engines = cluster.start_fake_engines("0", "--step-ms", "20")
    cluster.wait_ready()
    running = subprocess.Popen(
        command([cluster.port()], "--streams", 5, "--requests", 5, "--max-tokens", 4000, "--check"),
        stdout=subprocess.PIPE,
        text=True,
    )
    cluster.wait_status("fe0", lambda status: status["in_flight"] == 5, "streams")
    engines.kill()
    output, _ = running.communicate(timeout=60)
    ends = json.loads(output)["ends"]
    codes = ends["error_event"].get("dispatcher_closed", 0) + total(ends["http"])
    assert running.returncode == 0 and codes == total(ends) == 5, ends


def test_the_first_signal_lets_the_requests_in_flight_end(shared_cluster: Cluster) -> None:
    accepted = shared_cluster.status()["counters"]["accepted"]
    running = subprocess.Popen(
        command([shared_cluster.port()], "--streams", 10, "--seconds", 600, "--check"),
        stdout=subprocess.PIPE,
        text=True,
    )
    shared_cluster.wait_status(
        "fe0", lambda status: status["counters"]["accepted"] > accepted + 50, "requests"
    )
    running.send_signal(signal.SIGTERM)
    output, _ = running.communicate(timeout=60)
    report = json.loads(output)
    assert running.returncode == 0
    assert report["ends"]["ok"] == report["requests"] > 50
    shared_cluster.wait_idle()


def test_a_frontend_that_is_not_there_leaves_the_other_its_load(shared_cluster: Cluster) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        urls = [shared_cluster.port(), closed.getsockname()[1]]
        report, _ = run_bench(urls, "--streams", 2, "--requests", 100)
    ends = report["ends"]
    assert {*ends["not_connected"]} == {"Connection refused"}
    assert ends["ok"] + total(ends["not_connected"]) == 100
    assert ends["ok"] > 10, "a failed request is followed by a rest"


# --- servers that are wrong ---


def chunked(*events: str) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = [f"data: {event}\n\n".encode() for event in events]
    return head + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def event(ids: list[int], **fields: Any) -> str:
    return json.dumps({"request_id": "x", "choices": [{"index": 0, "token_ids": ids} | fields]})


@contextmanager
def liar(
    answer: Callable[[list[int]], bytes], *, closes: bool = True, piece: int = 65536
) -> Iterator[int]:
    """A server that answers one request, given its prompt, in pieces of so many bytes. Yields its port."""

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            request = b""
            while not request.endswith(b"}}"):
                request += connection.recv(65536)
            body = json.loads(request.partition(b"\r\n\r\n")[2])
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            data = answer(body["token_ids"])
            for start in range(0, len(data), piece):
                connection.sendall(data[start : start + piece])
            if not closes:
                connection.recv(1)  # until the client leaves

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(client.PATIENCE)
        assert not thread.is_alive()


ONE = ("--streams", 1, "--requests", 1, "--max-tokens", 3, "--check")
LENGTH = {"finish_reason": "length"}
DONE = client.DONE


def right(prompt: list[int]) -> list[int]:
    return expected(prompt, 3, client.VOCAB_SIZE)[0]


WRONG_TOKENS: dict[str, Callable[[list[int]], list[int]]] = {
    "missing": lambda ids: ids[:2],
    "foreign": lambda ids: [ids[0], ids[1] + 1, ids[2]],
    "too many": lambda ids: [*ids, 5],
}


@pytest.mark.parametrize("how", WRONG_TOKENS)
def test_a_wrong_token_is_found(how: str) -> None:
    with liar(lambda prompt: chunked(event(WRONG_TOKENS[how](right(prompt)), **LENGTH), DONE)) as port:
        report, log = run_bench([port], *ONE, exit_status=1)
    assert report["wrong_tokens"] == 1
    assert "request 0: token" in log


@pytest.mark.parametrize("piece", [1, 7, 65536])
def test_a_right_answer_of_this_server_is_right(piece: int) -> None:
    with liar(lambda prompt: chunked(event(right(prompt), **LENGTH), DONE), piece=piece) as port:
        report, log = run_bench([port], *ONE)
    assert report["ends"]["ok"] == 1 and log == ""


FAULTS: dict[str, Callable[[list[int]], bytes]] = {
    "an event after the end": lambda ids: chunked(event(ids, **LENGTH), event([], **LENGTH), DONE),
    "a stream that ends without [DONE]": lambda ids: chunked(event(ids, **LENGTH)),
    "[DONE] before the end": lambda ids: chunked(event(ids), DONE),
    "an event after [DONE]": lambda ids: chunked(event(ids, **LENGTH), DONE, event([])),
    "an event that is not JSON": lambda ids: chunked(event(ids, **LENGTH)[:-1], DONE),
    "a choice that is not one": lambda ids: chunked('{"choices":[]}', DONE),
    "a token that is no number": lambda ids: chunked('{"choices":[{"token_ids":["1"]}]}', DONE),
    "an event of more than one line": lambda ids: chunked(event(ids) + "\n" + event(ids)),
    "bytes after the end": lambda ids: chunked(event(ids, **LENGTH), DONE) + b"HTTP/1.1",
    "a chunk longer than its size": lambda ids: chunked(event(ids)).replace(b"\n\n\r\n", b"\n\n \r\n"),
    "not exactly one of Content-Length and Transfer-Encoding": lambda ids: b"HTTP/1.1 200 OK\r\n\r\n",
    "an error of no known form": lambda ids: b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\n{}",
    "no HTTP/1.1 status line": lambda ids: b"SSH-2.0-OpenSSH_9.2\r\n",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_malformed_answer_is_found(fault: str) -> None:
    with liar(lambda prompt: FAULTS[fault](right(prompt))) as port:
        report, log = run_bench([port], *ONE, exit_status=1)
    assert report["ends"]["malformed"] == {fault: 1}
    assert total(report["ends"]) == 1
    assert log == f"wavegate-bench: request 0: malformed: {fault}\n"


def test_an_answer_that_is_cut_is_said_to_be() -> None:
    with liar(lambda prompt: chunked(event(right(prompt)))[:-10]) as port:
        report, _ = run_bench([port], *ONE)
    assert report["ends"]["cut"] == {"in_answer": 1}


def test_an_answer_that_never_ends_is_given_up() -> None:
    with liar(lambda prompt: chunked(event(right(prompt)))[:-5], closes=False) as port:
        report, _ = run_bench([port], *ONE, "--stall-s", 0.5, exit_status=1)
    assert report["ends"]["stalled"] == total(report["ends"]) == 1


@pytest.mark.parametrize(
    "options",
    [
        ("--streams", "1"),
        ("--requests", "1"),
        ("--streams", "1", "--rate", "1", "--requests", "1"),
        ("--streams", "0", "--requests", "1"),
        ("--streams", "1.5", "--requests", "1"),
        ("--streams", "1", "--requests", "1", "--drop", "1.1"),
        ("--streams", "1", "--requests", "1", "--url", "https://127.0.0.1:1"),
        ("--streams", "1", "--requests", "1", "--url", "http://127.0.0.1"),
        ("--streams", "1", "--requests", "1", "what"),
    ],
)
def test_a_wrong_command_line_ends_with_status_2(options: tuple[str, ...]) -> None:
    done = subprocess.run(command([1], *options), capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and "see --help" in done.stderr and done.stdout == ""
