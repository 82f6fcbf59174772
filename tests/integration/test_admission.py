"""Early refusal instead of a queue without bound (B117)."""

import time
from contextlib import ExitStack

from integration import client
from integration.cluster import idle, wait_until
from integration.conftest import NewCluster


def test_of_a_hundred_and_fifty_requests_fifty_are_refused_at_once(new_cluster: NewCluster) -> None:
    cluster = new_cluster(2, limits={"max_in_flight": 100}).start()
    engines = cluster.start_engines(withhold=True)
    cluster.wait_ready()
    body = client.generate_body([1, 2, 3], 8, stream=True)
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(client.open_post(cluster.port(), body))
        cluster.wait_status("fe0", lambda status: status["in_flight"] == 100, "100 in flight")
        took = []
        for _ in range(50):
            begun = time.monotonic()
            answer = client.post(cluster.port(), body)
            took.append(time.monotonic() - begun)
            client.error_of(answer, 429, "overloaded")
            assert int(answer.headers["retry-after"]) >= 1
        assert sorted(took)[25] < 0.01, "a refusal waits for nothing"
        assert sum(len(engine.added) for engine in engines) == 100
    cluster.wait_status("fe0", idle, "room after the clients have left")
    with client.open_post(cluster.port(), body):
        cluster.wait_status("fe0", lambda status: status["in_flight"] == 1, "one more request")
        wait_until(lambda: sum(len(engine.added) for engine in engines) == 101, "its ADD")
