"""An engine on pyzmq and msgspec, the libraries of vLLM's engines, behind the real processes: it decodes strictly
everything it is sent (its `close` fails the test otherwise), and serves."""

from integration import client
from integration.cluster import Cluster
from integration.conftest import NewCluster
from interop import messages as wire


def serving(new_cluster: NewCluster) -> Cluster:
    """Two frontends, four ranks that write their messages in different ways."""
    cluster = new_cluster(4, {"fe0": "0-3", "fe1": "0,2"}).start()
    for rank, (trim, older) in enumerate([(False, False), (True, False), (False, True), (True, True)]):
        cluster.start_engine(rank, trim=trim, older=older, tokens_per_step=1 + rank)
    return cluster.wait_ready()


def test_two_hundred_requests_are_served(new_cluster: NewCluster) -> None:
    cluster = serving(new_cluster)
    jobs = [
        client.Job(cluster.port(name), [number, 7, 31999], 1 + number % 64, stream=number % 3 > 0)
        for number in range(100)
        for name in ("fe0", "fe1")
    ]
    client.run(jobs)
    cluster.wait_idle()
    requests = [request for engine in cluster.engines for request in engine.added]
    assert len(requests) == len({request.id for request in requests}) == 200
    assert all(len(engine.added) > 0 for engine in cluster.engines)
    for request in requests:
        assert set(wire.explicit_defaults(request.payload)) <= {"max_tokens"}
    clients = [{request.add.client_index for request in engine.added} for engine in cluster.engines]
    assert clients == [{1, 2}, {1}, {1, 2}, {1}]


def test_aborts_of_many_requests_are_accepted(new_cluster: NewCluster) -> None:
    cluster = serving(new_cluster)
    for engine in cluster.engines:
        engine.withhold(True)
    streams = [
        client.open_post(cluster.port(name), client.generate_body([number], 64, stream=True))
        for number in range(20)
        for name in ("fe0", "fe1")
    ]
    cluster.wait_status("fe0", lambda status: status["in_flight"] == 20, "20 in flight")
    cluster.wait_status("fe1", lambda status: status["in_flight"] == 20, "20 in flight")
    for stream in streams:
        stream.close()
    cluster.wait_idle()
    for engine in cluster.engines:
        engine.wait_until(lambda: not engine.requests, "ABORTs of all")
    assert sum(len(engine.aborted) for engine in cluster.engines) == 40
    for engine in cluster.engines:
        engine.withhold(False)
    client.run([client.Job(cluster.port("fe0"), [number], 8) for number in range(20)])


def test_the_longest_prompt_arrives_whole(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1).start()
    engine = cluster.start_engine(0, max_model_len=200_001)
    cluster.wait_ready()
    prompt = [(number * 7919) % client.VOCAB_SIZE for number in range(200_000)]
    client.run([client.Job(cluster.port(), prompt, 1)])
    assert engine.added[0].add.prompt_token_ids == prompt
