"""How long a paused lockstep group sleeps on: from the moment at which an engine has an ADD to the moment at which the last rank has
its START_DP_WAVE, as a ratio of a bare ZeroMQ round trip in the same run. Nothing is asserted.

    cd tests && WG_BUILD=../build/demo ../build/test/venv/bin/python -m bench.cold_wake [--rounds 50] [--ranks 16]
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time

import msgspec
import zmq

from integration import client
from integration.cluster import Cluster, wait_until
from interop.engine import Engine

START = b"\x02"


def started_at(engine: Engine, wave: int) -> float:
    """When this engine got the first START_DP_WAVE of that wave; 0.0: not yet."""
    payload = msgspec.msgpack.encode([wave, None])
    return next((r.at for r in engine.received if r.socket == "publish" and r.frames == [START, payload]), 0.0)


def one_wake(cluster: Cluster, wave: int, rank: int) -> float:
    target = cluster.engines[rank]
    count = len(target.added)
    with client.open_post(
        cluster.port(), client.generate_body([1, 2, 3], 4), [("X-data-parallel-rank", str(rank))]
    ):
        request = target.wait_added(count + 1)
        for engine in cluster.engines:
            engine.wait_until(lambda: started_at(engine, wave) > 0.0, f"the wake of wave {wave}")
    added = next(r.at for r in target.received if r.frames[-1] == request.payload)
    return max(started_at(engine, wave) for engine in cluster.engines) - added


def round_trips(address: str, rounds: int) -> list[float]:
    context = zmq.Context()
    server = context.socket(zmq.ROUTER)
    server.bind(address)
    echo = threading.Thread(
        target=lambda: [server.send_multipart(server.recv_multipart()) for _ in range(rounds)]
    )
    echo.start()
    peer = context.socket(zmq.DEALER)
    peer.connect(address)
    times = []
    for _ in range(rounds):
        began = time.monotonic()
        peer.send(START)
        peer.recv()
        times.append(time.monotonic() - began)
    echo.join()
    context.destroy(linger=0)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--ranks", type=int, default=16)
    options = parser.parse_args()
    cluster = Cluster(options.ranks, lockstep=True).start()
    try:
        for rank in range(options.ranks):
            cluster.start_engine(rank, config_hash="aaaa", withhold=True)
        cluster.wait_ready()
        wakes = []
        for wave in range(options.rounds):
            cluster.wait_status("fe0", lambda status: status["wave"] == wave, f"wave {wave}")
            wakes.append(one_wake(cluster, wave, options.ranks // 2))
            cluster.wait_idle()
            first = cluster.engines[0]
            first.send_raw("stats", [first._envelope([], {"wave_complete": wave})])
            wait_until(lambda: cluster.status("coordinator")["wave"] == wave + 1, "the pause")
        trips = round_trips(f"ipc://{cluster.folder}/echo", 2000)
    finally:
        cluster.close()
    wake, trip = statistics.median(wakes), statistics.median(trips)
    print(f"from ADD to the last of {options.ranks} ranks awake: {wake * 1e6:.0f} us (median of {len(wakes)})")
    print(f"bare ZeroMQ round trip:                   {trip * 1e6:.0f} us (median of {len(trips)})")
    print(f"ratio: {wake / trip:.1f}")


if __name__ == "__main__":
    main()
