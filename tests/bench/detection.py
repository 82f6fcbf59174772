"""How long after an engine was killed (SIGKILL, on this machine) its requests in flight have failed at their clients:
one rank after the other dies with streams on it. Nothing is asserted.

    cd tests && WG_BUILD=../build/demo ../build/test/venv/bin/python -m bench.detection [--engines 20] [--streams 10]
"""

from __future__ import annotations

import argparse
import selectors
import signal
import statistics
import time
from contextlib import ExitStack

from integration import client
from integration.cluster import PATIENCE, Cluster, Process


def open_streams(cluster: Cluster, stack: ExitStack, rank: int, count: int) -> list[client.Connection]:
    """Streams of that rank that have begun."""
    streams = []
    for number in range(count):
        body = client.generate_body([rank, number], 4000, stream=True)
        stream = stack.enter_context(
            client.open_post(cluster.port(), body, [("X-data-parallel-rank", str(rank))])
        )
        assert "choices" in stream.event()
        streams.append(stream)
    return streams


def seconds_to_end(engine: Process, streams: list[client.Connection]) -> list[float]:
    """For each stream, from the kill to the last byte of it."""
    took = []
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream.socket, selectors.EVENT_READ, stream)
        killed = time.monotonic()
        engine.may_end_with = {-signal.SIGKILL}
        engine.signal(signal.SIGKILL)
        while selector.get_map():
            ready = selector.select(PATIENCE)
            assert ready, "a stream that never ended"
            for key, _ in ready:
                if not key.data.read() or key.data.answer.done:
                    took.append(time.monotonic() - killed)
                    selector.unregister(key.fileobj)
    for stream in streams:
        *_, error, done = stream.answer.events()
        assert error["error"]["code"] == "dispatcher_closed" and done == client.DONE
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", type=int, default=20)
    parser.add_argument("--streams", type=int, default=10, help="of each engine")
    parser.add_argument("--ipc", action="store_true", help="instead of TCP over loopback")
    options = parser.parse_args()
    cluster = Cluster(options.engines, tcp=not options.ipc).start()
    took: list[float] = []
    try:
        engines = [
            cluster.start_fake_engines(str(rank), "--step-ms", "10") for rank in range(options.engines)
        ]
        cluster.wait_ready()
        for rank, engine in enumerate(engines):
            with ExitStack() as stack:
                took += seconds_to_end(engine, open_streams(cluster, stack, rank, options.streams))
    finally:
        cluster.close()
    print(
        "from the kill of an engine to the end of a stream on it:",
        f"{statistics.median(took) * 1e3:.1f} ms in the median,",
        f"{max(took) * 1e3:.1f} ms at most ({len(took)} streams on {options.engines} engines)",
    )


if __name__ == "__main__":
    main()
