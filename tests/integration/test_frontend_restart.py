"""A frontend that is killed and started again under a steady load of streams: nobody else notices, and what its
former life left on the engines is aborted there. By hand: WG_RESTART_RATE=500 (streams per second, of all frontends
together) WG_RESTART_KILLS=10; with -s it prints how long the restarts took."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import ExitStack
from typing import Any

from integration import client
from integration.cluster import PATIENCE, Cluster, Process, wait_until
from integration.conftest import NewCluster
from integration.test_bench import command, total

RATE = int(os.environ.get("WG_RESTART_RATE", "60"))
KILLS = int(os.environ.get("WG_RESTART_KILLS", "2"))
OTHERS = ("fe1", "fe2")
ORPHANS = 5  # for each kill, besides what the load has in flight at that moment
TOKENS = 16


class Load:
    """wavegate-bench in an open loop until `end`, which returns its report."""

    def __init__(self, cluster: Cluster, names: tuple[str, ...], rate: int) -> None:
        options = ("--rate", rate, "--seconds", 120, "--max-tokens", TOKENS, "--check")
        urls = [cluster.port(name) for name in names]
        self._process = subprocess.Popen(command(urls, *options), stdout=subprocess.PIPE, text=True)

    def end(self) -> dict[str, Any]:
        self._process.send_signal(signal.SIGTERM)
        output, _ = self._process.communicate(timeout=60)
        assert self._process.returncode == 0, "a token was wrong"
        return json.loads(output)


def accepted(cluster: Cluster, name: str) -> int:
    return cluster.status(name)["counters"]["accepted"]


def answers(process: Process) -> bool:
    """Whether the frontend, which may just be starting, has served a request."""
    try:
        return client.post(process.http_port(), client.generate_body([1, 2, 3], 1)).status == 200
    except OSError:
        return False


def kill_and_restart(cluster: Cluster, life: int) -> float:
    """Returns how many seconds after its start the frontend has served a request."""
    load = Load(cluster, ("fe0",), RATE // 3)
    with ExitStack() as stack:
        for number in range(ORPHANS):
            body = client.generate_body([life, number], 4000, stream=True, request_id=f"orphan-{life}-{number}")
            stream = stack.enter_context(client.open_post(cluster.port("fe0"), body))
            assert "choices" in stream.event()
        before = {name: accepted(cluster, name) for name in ("fe0", *OTHERS)}
        for name, count in before.items():
            wait_until(lambda: accepted(cluster, name) > count + 5, f"load on {name}")
        cluster["fe0"].kill()
    ends = load.end()["ends"]
    assert total(ends) == ends["ok"] + total(ends["cut"]) + total(ends["not_connected"])
    begun = time.monotonic()
    process = cluster.start_frontend("fe0")
    wait_until(lambda: answers(process), "an answer of the restarted frontend")
    return time.monotonic() - begun


def wire_ids(engines: Process, *names: str) -> set[str]:
    return {event["request_id"] for event in list(engines.events) if event["event"] in names}


def orphans(ids: set[str]) -> set[str]:
    return {wire_id for wire_id in ids if wire_id.startswith("orphan-")}


def test_a_killed_frontend_serves_again_and_nobody_else_notices(new_cluster: NewCluster) -> None:
    cluster = new_cluster(4, {name: "0-3" for name in ("fe0", *OTHERS)}).start()
    engines = cluster.start_fake_engines("0-3", "--step-ms", "10", "--max-num-seqs", "4096", "--events")
    cluster.wait_ready()
    ready = [event["rank"] for event in engines.events if event["event"] == "init"]
    load = Load(cluster, OTHERS, RATE - RATE // 3)
    took = [kill_and_restart(cluster, life) for life in range(KILLS)]
    wait_until(
        lambda: len(orphans(wire_ids(engines, "abort"))) == KILLS * ORPHANS,
        lambda: f"abort of every orphan: {sorted(orphans(wire_ids(engines, 'abort')))}",
    )
    report = load.end()
    print(
        f"{RATE} streams/s, {KILLS} restarts: served again after {max(took) * 1000:.0f} ms at most,",
        f"{sorted(took)[len(took) // 2] * 1000:.0f} ms in the median",
    )
    assert max(took) < PATIENCE / 2
    assert report["ends"]["ok"] == report["requests"] > 0
    cluster.wait_idle()
    for name in OTHERS:
        status = cluster.status(name)
        counters = status["counters"]
        assert {cause for cause, count in counters["ended"].items() if count} == {"length"}
        assert counters["orphan_outputs"] == counters["aborts_sent"] == 0
        assert status["faults"] == {}
    wait_until(
        lambda: wire_ids(engines, "add") == wire_ids(engines, "finish", "abort"), "the end of all that was added"
    )
    assert [event["rank"] for event in engines.events if event["event"] == "init"] == ready, "no engine noticed"
