"""Whatever a body says, nothing leaves that an engine would refuse, and the answer is an answer.

WG_BODIES sets how many there are (a long run: 100000), WG_SEED where they begin."""

import os
import socket

from integration import client
from integration.conftest import NewCluster
from interop.bodies import ADAPTER, Body, Generator

COUNT = int(os.environ.get("WG_BODIES", "1500"))
SEED = int(os.environ.get("WG_SEED", "1"))
ALLOWED = {200, 400, 404, 413}


class Line:
    """A connection that is kept for as long as the server keeps it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.socket: socket.socket | None = None

    def post(self, body: Body) -> client.Answer:
        answer = client.Answer()
        self.socket = self.socket or socket.create_connection((client.HOST, self.port), client.PATIENCE)
        self.socket.sendall(client.request_bytes("POST", body.path, body.text))
        while not answer.done:
            data = self.socket.recv(65536)
            assert data, f"no answer to {body.text[:300]!r}"
            answer.feed(data)
        if not answer.keeps_connection:
            self.close()
        return answer

    def close(self) -> None:
        if self.socket:
            self.socket.close()
        self.socket = None


def test_every_body_is_served_or_refused_and_no_engine_is_hurt(new_cluster: NewCluster) -> None:
    cluster = new_cluster(1, adapters={ADAPTER: (3, "/loras/sql")}).start()
    engine = cluster.start_engine(0, tokens_per_step=300, stats=False)
    cluster.wait_ready()
    generator = Generator(SEED)
    line = Line(cluster.port())
    statuses: dict[int, int] = {}
    for number in range(COUNT):
        body = generator.body()
        answer = line.post(body)
        about = f"seed {SEED}, body {number}: {body.path} {body.text[:500]!r}: {bytes(answer.body)[:500]!r}"
        assert answer.status in ALLOWED, f"{answer.status} for {about}"
        assert answer.status == 200 or not body.is_valid, f"a sound body was refused: {about}"
        if answer.status != 200:
            assert answer.json()["error"]["message"]  # an error is sound JSON, whatever it is about
        statuses[answer.status] = statuses.get(answer.status, 0) + 1
        engine.added.clear()
        engine.received.clear()
    line.close()
    engine.check()
    assert statuses[200] > COUNT // 2 and statuses[400] > COUNT // 10, statuses
    cluster.wait_idle()
