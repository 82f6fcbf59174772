"""Faults of every kind, one over the other, under load: see chaos/driver.py. A few, and always the same, unless
WG_CHAOS_FAULTS says how many, and WG_SEED which."""

from __future__ import annotations

import os

import pytest

from integration import hosts
from integration.chaos.driver import HOSTS, Chaos, start_engine
from integration.chaos.faults import HEARTBEAT_TIMEOUT_S
from integration.chaos.ports import give_ports
from integration.conftest import NewCluster
from integration.hosts import Network

SEED = int(os.environ.get("WG_SEED", "1"))
FAULTS = int(os.environ.get("WG_CHAOS_FAULTS", "25"))
WHY_NO_HOSTS = hosts.missing()
TIMEOUTS = {
    "heartbeat_interval_ms": 500,
    "heartbeat_timeout_ms": int(HEARTBEAT_TIMEOUT_S * 1000),
    "wave_repeat_ms": 100,
    "wave_watchdog_ms": 2000,
}


def play(new_cluster: NewCluster, frontends: dict[str, str], lockstep: bool) -> None:
    cluster = new_cluster(3, frontends, lockstep=lockstep, timeouts=TIMEOUTS)
    give_ports(cluster, tcp=lockstep == (SEED % 2 == 0))
    cluster.start()
    for rank in range(cluster.ranks):
        start_engine(cluster, rank)
    cluster.wait_ready()
    Chaos(cluster, SEED, FAULTS, lockstep=lockstep).run()


def test_independent_ranks(new_cluster: NewCluster) -> None:
    play(new_cluster, {"fe0": "0-2", "fe1": "0-1", "fe2": "2"}, lockstep=False)


def test_a_lockstep_group(new_cluster: NewCluster) -> None:
    play(new_cluster, {"fe0": "0-2", "fe1": "0-1", "fe2": "0-2"}, lockstep=True)


@pytest.mark.skipif(WHY_NO_HOSTS is not None, reason=str(WHY_NO_HOSTS))
def test_ranks_on_hosts_of_their_own(new_cluster: NewCluster) -> None:
    ranks, first = 3, HOSTS[0]
    frontends = {"fe0": "0-2", "fe1": "0-1", "fe2": "2"}
    with Network(HOSTS[: ranks + 1]) as network, network.inside(first):
        cluster = new_cluster(ranks, frontends, timeouts=TIMEOUTS)
        give_ports(cluster, tcp=False)
        network.place(cluster, dict.fromkeys(["coordinator", *frontends], first))
        cluster.start()
        for rank in range(ranks):
            start_engine(cluster, rank, network)
        cluster.wait_ready()
        Chaos(cluster, SEED, FAULTS, lockstep=False, network=network).run()
