"""What is refused because of what is already in flight."""

import pytest

from integration import client
from integration.cluster import wait_until
from integration.conftest import NewCluster


def test_an_id_that_is_in_flight_is_refused_until_its_request_ends(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    engine = cluster.start_engine(0, withhold=True)
    cluster.wait_ready()
    body = client.generate_body([1, 2, 3], 8, request_id="twice")
    with client.open_post(cluster.port(), body) as first:
        engine.wait_added()
        for again, headers in ((body, []), (client.generate_body([4], 8), [("X-Request-Id", "twice")])):
            error = client.error_of(client.post(cluster.port(), again, headers), 409, "duplicate_request_id")
            assert "`twice`" in error["message"]
        engine.withhold(False)
        assert first.whole().status == 200
    assert client.post(cluster.port(), body).status == 200
    assert len(engine.added) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_more_requests_than_the_limit_are_told_to_retry_later(new_cluster: NewCluster, stream: bool) -> None:
    cluster = new_cluster(1, limits={"max_in_flight": 2}).start()
    engine = cluster.start_engine(0, withhold=True)
    cluster.wait_ready()
    body = client.generate_body([1, 2, 3], 8, stream=stream)
    with client.open_post(cluster.port(), body) as first, client.open_post(cluster.port(), body) as second:
        engine.wait_added(2)
        answer = client.post(cluster.port(), body)
        error = client.error_of(answer, 429, "overloaded")
        assert error["type"] == "overloaded_error" and "2 requests" in error["message"]
        assert int(answer.headers["retry-after"]) >= 1
        engine.withhold(False)
        assert first.whole().status == second.whole().status == 200
    wait_until(lambda: client.post(cluster.port(), body).status == 200, "room after the end of the others")
    assert len(engine.added) == 3
