"""Lockstep groups that really step together, in several processes: a rank that steps alone blocks, and its process
ends with status 7. WG_WAVES sets how many waves each test drives (the default is for CI)."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable

import msgspec
import zmq

from integration import client
from integration.cluster import Cluster
from integration.conftest import NewCluster
from interop.tokens import expected

WAVES = int(os.environ.get("WG_WAVES", "40"))
RANKS_PER_PROCESS = 4
EOS = 2  # the harness's model.eos_token_ids


def group(new_cluster: NewCluster, processes: int, frontends: int) -> Cluster:
    ranks = processes * RANKS_PER_PROCESS
    cluster = new_cluster(
        ranks, {f"fe{i}": f"0-{ranks - 1}" for i in range(frontends)}, lockstep=True, timeouts={"wave_repeat_ms": 100}
    ).start()
    for first in range(0, ranks, RANKS_PER_PROCESS):
        cluster.start_fake_engines(
            f"{first}-{first + RANKS_PER_PROCESS - 1}", "--step-ms", "0", "--collective-timeout-ms", "60000"
        )
    return cluster.wait_ready()


class Load:
    """Bursts of requests through every frontend with idle gaps between, each a wave or more, until told to stop."""

    def __init__(self, cluster: Cluster, seed: int, may_fail: bool) -> None:
        self.cluster = cluster
        self.may_fail = may_fail
        self.succeeded = 0
        self.refused: dict[str, int] = {}
        self.wrong: list[str] = []  # found in threads, where an assertion would go unheard
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def one(self, name: str) -> None:
        prompt = [self._random.randrange(client.VOCAB_SIZE) for _ in range(3)]
        count = self._random.randrange(1, 40)
        body = client.generate_body(prompt, count)
        try:
            answer = client.post(self.cluster.port(name), body)
        except (OSError, AssertionError):  # refused, reset, or cut short
            self._refuse("connection")
            return
        if answer.status != 200:
            self._refuse(answer.json()["error"]["code"])
            return
        wanted, reason = expected(prompt, count, client.VOCAB_SIZE, stop_ids=(EOS,))
        choice = answer.json()["choices"][0]
        with self._lock:
            self.succeeded += 1
            if (choice["token_ids"], choice["finish_reason"]) != (wanted, reason):
                self.wrong.append(f"{prompt}: {choice} instead of {wanted}, {reason}")

    def burst(self) -> None:
        names = list(self.cluster.frontends)
        threads = [
            threading.Thread(target=self.one, args=(self._random.choice(names),))
            for _ in range(self._random.randrange(1, 6))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a request hangs"
        assert not self.wrong, self.wrong

    def _refuse(self, why: str) -> None:
        with self._lock:
            self.refused[why] = self.refused.get(why, 0) + 1
            if not self.may_fail:
                self.wrong.append(why)


def wave(cluster: Cluster) -> int:
    try:
        return int(cluster.status("coordinator")["wave"])
    except OSError:
        return 0


def drive(cluster: Cluster, load: Load, disturb: Callable[[int], None] = lambda burst: None) -> int:
    """Bursts until the group has gone through WAVES waves; returns how many bursts that took."""
    bursts = 0
    while wave(cluster) < WAVES:
        disturb(bursts)
        load.burst()
        bursts += 1
        time.sleep(load._random.choice((0.0, 0.0, 0.02)))  # an idle gap, part of the load
    cluster.wait_status("coordinator", lambda status: not status["engines_running"], "the pause")
    cluster.wait_idle()
    return bursts


def test_a_group_of_several_processes_wakes_and_pauses_and_loses_nothing(new_cluster: NewCluster) -> None:
    cluster = group(new_cluster, 4, 4)
    load = Load(cluster, 1, may_fail=False)
    bursts = drive(cluster, load)
    print(f"{wave(cluster)} waves, {bursts} bursts, {load.succeeded} requests")
    assert load.succeeded >= bursts


def test_a_coordinator_that_dies_again_and_again_leaves_no_rank_stuck(new_cluster: NewCluster) -> None:
    cluster = group(new_cluster, 2, 2)
    load = Load(cluster, 2, may_fail=True)

    def disturb(burst: int) -> None:
        if burst % 4 == 3:
            cluster["coordinator"].kill()
            cluster.start_coordinator()

    bursts = drive(cluster, load, disturb)
    print(f"{wave(cluster)} waves, {bursts} bursts, {load.succeeded} requests, refused {load.refused}")
    assert load.succeeded > 0 and set(load.refused) <= {"no_rank_ready", "control_closed"}


def test_a_frontend_that_dies_in_the_middle_of_its_requests_leaves_no_rank_stuck(new_cluster: NewCluster) -> None:
    cluster = group(new_cluster, 2, 2)
    load = Load(cluster, 3, may_fail=True)

    def disturb(burst: int) -> None:
        if burst % 4 == 3:
            killer = threading.Timer(0.002, cluster["fe1"].kill)
            killer.start()
            load.one("fe1")
            killer.join()
            cluster.start_frontend("fe1")
            cluster.wait_ready("fe1")

    bursts = drive(cluster, load, disturb)
    print(f"{wave(cluster)} waves, {bursts} bursts, {load.succeeded} requests, refused {load.refused}")
    assert load.succeeded > 0 and set(load.refused) <= {"connection"}


class LossyRelay(threading.Thread):
    """Stands between the coordinator and one rank: rewrites that rank's INIT so that its broadcasts come through here,
    where every `every`-th START_DP_WAVE is dropped."""

    def __init__(self, cluster: Cluster, rank: int, every: int) -> None:
        super().__init__(daemon=True)
        self.handshake = f"ipc://{cluster.folder}/relay-handshake"
        self.dropped = 0
        self._every = every
        self._broadcasts = f"ipc://{cluster.folder}/relay-broadcasts"
        self._starts = 0
        self._ended = threading.Event()
        context = self._context = zmq.Context()
        self._engine = context.socket(zmq.ROUTER)
        self._engine.bind(self.handshake)
        self._coordinator = context.socket(zmq.DEALER)
        self._coordinator.setsockopt(zmq.IDENTITY, rank.to_bytes(2, "little"))
        self._coordinator.connect(cluster.address["handshake"])
        self._down = context.socket(zmq.XPUB)
        self._down.setsockopt(zmq.XPUB_VERBOSE, 1)
        self._down.bind(self._broadcasts)
        self._up = context.socket(zmq.XSUB)
        self._up.connect(cluster.address["engine_publish"])
        self.start()

    def run(self) -> None:
        identity = b""
        poller = zmq.Poller()
        for socket in (self._engine, self._coordinator, self._down, self._up):
            poller.register(socket, zmq.POLLIN)
        while not self._ended.is_set():
            ready = dict(poller.poll(100))
            if self._engine in ready:
                identity, message = self._engine.recv_multipart()
                self._coordinator.send(message)
            if self._coordinator in ready:
                init = msgspec.msgpack.decode(self._coordinator.recv())
                init["addresses"]["coordinator_input"] = self._broadcasts
                self._engine.send_multipart([identity, msgspec.msgpack.encode(init)])
            if self._down in ready:
                self._up.send(self._down.recv())
            if self._up in ready:
                self._pass(self._up.recv_multipart())
        self._context.destroy(linger=0)

    def _pass(self, frames: list[bytes]) -> None:
        if frames[0] == b"\x02":
            self._starts += 1
            if self._starts % self._every == 0:
                self.dropped += 1
                return
        self._down.send_multipart(frames)

    def close(self) -> None:
        self._ended.set()
        self.join(10)


def test_a_wake_that_is_lost_on_its_way_to_one_rank_is_repeated(new_cluster: NewCluster) -> None:
    cluster = new_cluster(4, lockstep=True, timeouts={"wave_repeat_ms": 50}).start()
    relay = LossyRelay(cluster, 3, every=5)
    options = ("--step-ms", "0", "--collective-timeout-ms", "60000")
    cluster.start_fake_engines("0-2", *options)
    command = ("--handshake", relay.handshake, "--ranks", "3", *options)
    cluster._start("engine 3", "tests/wavegate-fake-engine", *command)
    cluster.wait_ready()
    load = Load(cluster, 4, may_fail=False)
    drive(cluster, load)
    print(f"{wave(cluster)} waves, {load.succeeded} requests, {relay.dropped} wakes dropped")
    relay.close()
    assert relay.dropped > 0


def test_a_frontend_that_was_stopped_does_not_take_its_own_silence_for_the_coordinators(
    new_cluster: NewCluster,
) -> None:
    cluster = new_cluster(2, lockstep=True).start()
    cluster.start_fake_engines(None, "--step-ms", "50")
    cluster.wait_ready()
    body = client.generate_body([1, 2, 3], 120, stream=True, sampling={"ignore_eos": True})
    with client.open_post(cluster.port(), body) as stream:
        assert stream.event()["choices"]
        cluster["fe0"].signal(signal.SIGSTOP)
        time.sleep(3.5)  # longer than a coordinator may be silent
        cluster["fe0"].signal(signal.SIGCONT)
        *_, last, done = stream.events()
    assert (last["choices"][0]["finish_reason"], done) == ("length", client.DONE)
