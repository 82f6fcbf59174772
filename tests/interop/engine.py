"""One engine rank in Python: pyzmq and msgspec, faithful to protocol.md 3 to 6, sharing no code with the C side.

    engine = Engine("tcp://127.0.0.1:29550", rank=0).start()   # dials, registers, then serves by itself
    engine.wait_until(lambda: engine.phase == "serving", "serving")
    ...
    engine.close()                                             # raises if the engine was sent anything wrong

It runs in a thread of its own, and everything that touches a socket happens there (`call`). A test scripts it by
holding back steps of the start (`hold`, `release`), by `withhold` (requests are taken but not answered) and by sending
whatever it likes on any of its sockets. Every frame that arrives is recorded, with its time and its socket.
"""

import os
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import zmq

from interop import messages as wire
from interop.answers import AnswerOptions, Request
from interop.tensors import Packer

__all__ = ["START_STEPS", "Engine", "Options", "Received", "Request"]

PATIENCE = 20.0  # seconds until a wait has failed; nothing takes this long unless it is broken
START_STEPS = ("registration", "subscription", "ready")


@dataclass
class Received:
    at: float
    socket: str  # "handshake", "publish" or "input:<client index>"
    frames: list[bytes]
    message: Any = None  # decoded, where the frames were right


@dataclass(kw_only=True)
class Options(AnswerOptions):
    max_model_len: int = 4096
    registration: dict[str, Any] | bytes | None = None  # None: every key
    local: bool = False
    headless: bool = True
    config_hash: str | None = None
    hold: Iterable[str] = ()  # of START_STEPS
    withhold: bool = False
    trim: bool = False  # drop trailing defaults from arrays
    stats: bool = True


@dataclass
class _Sockets:
    handshake: zmq.Socket[bytes]
    inputs: list[zmq.Socket[bytes]] = field(default_factory=list)
    outputs: list[zmq.Socket[bytes]] = field(default_factory=list)
    publish: zmq.Socket[bytes] | None = None
    stats: zmq.Socket[bytes] | None = None


class Engine:
    def __init__(self, handshake: str, rank: int, *, identity: bytes | None = None, **options: Any) -> None:
        self.rank = rank
        self.options = Options(**options)
        self.phase = "new"  # then hello, init, serving, closed
        self.init: wire.Init | None = None
        self.received: list[Received] = []
        self.requests: dict[str, Request] = {}  # in flight, by wire id
        self.added: list[Request] = []  # all there ever were
        self.aborted: list[str] = []
        self.failures: list[str] = []
        self._address = handshake
        self._identity = rank.to_bytes(2, "little") if identity is None else identity
        self._held = set(self.options.hold)
        self.done: set[str] = (
            set()
        )  # steps of the start: START_STEPS, and "broadcast" for the READY that came
        self._withhold = self.options.withhold
        self._muted = False
        self._questions: list[tuple[int, int]] = []  # client, call_id
        self._ids_to_name: dict[int, list[str]] = {}
        self._counts_told = (0, 0)
        self._steps = 0
        self._changed = threading.Condition()
        self._jobs: deque[Callable[[], None]] = deque()
        self._names: dict[zmq.Socket[bytes], str] = {}
        self._wake_read, self._wake_write = os.pipe()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"engine-{rank}", daemon=True)

    # --- for the test's thread ---

    def start(self) -> "Engine":
        self._thread.start()
        return self

    def wait_until(self, condition: Callable[[], Any], what: str, timeout: float = PATIENCE) -> Any:
        """Waits for news of this engine until the condition holds; returns its value."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.failures or condition(), timeout):
                raise AssertionError(f"rank {self.rank}: no {what} after {timeout} s; phase {self.phase}")
        self.check()
        return condition()

    def wait_serving(self) -> "Engine":
        self.wait_until(lambda: self.phase == "serving", "start-up")
        return self

    def wait_added(self, count: int = 1) -> Request:
        """The newest request, once there were that many."""
        self.wait_until(lambda: len(self.added) >= count, f"{count} ADDs")
        return self.added[-1]

    def wait_aborted(self, wire_id: str) -> None:
        self.wait_until(lambda: wire_id in self.aborted, f"ABORT of {wire_id}")

    def check(self) -> None:
        if self.failures:
            raise AssertionError(
                f"rank {self.rank} was sent what no engine accepts:\n" + "\n".join(self.failures)
            )

    def release(self, step: str) -> None:
        """Goes on with a held step of the start."""
        self.call(lambda: self._held.discard(step))

    def lose_ready(self) -> None:
        """Goes on as if it had sent its READY, which was lost with its connection."""

        def lose() -> None:
            self.done.add("ready")
            self._poller.unregister(self._sockets.handshake)
            self._sockets.handshake.close(linger=0)
            self._enter("serving")

        self.call(lose)

    def mute(self, on: bool = True) -> None:
        """From now on it takes everything, and says nothing but what the test sends; or no longer so."""
        self.call(lambda: setattr(self, "_muted", on))

    def withhold(self, on: bool) -> None:
        """While on, requests are taken but not answered; turned off, they all are."""
        self.call(lambda: setattr(self, "_withhold", on))

    def send(
        self, client: int, outputs: Iterable[Any] = (), aux: Iterable[bytes] = (), **envelope: Any
    ) -> None:
        """One EngineCoreOutputs to that client index, with the fields given."""
        message = self._envelope(list(outputs), envelope)
        self.send_raw(f"output:{client}", [message, *aux])

    def output(self, request: Request, tokens: list[int], **fields: Any) -> Any:
        """An output of that request, to be sent by the test itself."""
        return request.output(tokens, **fields)

    def send_stats(self, **numbers: Any) -> None:
        """Scheduler stats to the coordinator."""
        stats = wire.SchedulerStats(**numbers)
        self.send_raw("stats", [self._envelope([], {"scheduler_stats": stats})])

    def send_raw(self, socket: str, frames: list[bytes]) -> None:
        """Any frames on any socket: handshake, publish, stats, input:<client>, output:<client>."""
        self.call(lambda: self._socket(socket).send_multipart(frames))

    def redial_output(self, client: int) -> None:
        """Drops one output connection with all that is on its way, and dials again, as after a reset."""

        def redial() -> None:
            assert self.init
            address = self.init.addresses.outputs[client]
            self._sockets.outputs[client].setsockopt(zmq.LINGER, 0)
            self._sockets.outputs[client].disconnect(address)
            self._sockets.outputs[client].connect(address)

        self.call(redial)

    def send_sentinel(self) -> None:
        for client in range(len(self._sockets.outputs)):
            self.send_raw(f"output:{client}", [wire.SENTINEL])

    def call(self, job: Callable[[], Any]) -> Any:
        """Runs the job in the engine's thread and returns what it returns."""
        done = threading.Event()
        result: list[Any] = []

        def run() -> None:
            try:
                result.extend((job(), None))
            except Exception as error:  # belongs to the caller
                result.extend((None, error))
            done.set()

        self._jobs.append(run)
        os.write(self._wake_write, b"\0")
        if not done.wait(PATIENCE):
            raise AssertionError(f"rank {self.rank}: its thread is gone or stuck; phase {self.phase}")
        if result[1]:
            raise result[1]
        return result[0]

    def close(self) -> None:
        """Breaks every connection at once, as a killed engine does; then raises what was wrong before."""
        self._closing = True
        if self._thread.is_alive():
            os.write(self._wake_write, b"\0")
            self._thread.join(PATIENCE)
        for descriptor in (self._wake_read, self._wake_write):
            os.close(descriptor)
        self.check()

    # --- the engine's own thread ---

    def _run(self) -> None:
        self._context = zmq.Context()
        self._poller = zmq.Poller()
        self._poller.register(self._wake_read, zmq.POLLIN)
        try:
            self._sockets = _Sockets(self._dial(zmq.DEALER, self._address, "handshake"))
            self._send_status("HELLO")
            self._enter("hello")
            while not self._closing:
                self._turn()
        except Exception:  # a bug of this file: it must not look like silence
            self._fail(traceback.format_exc())
        finally:
            self._context.destroy(linger=0)
            self._enter("closed")

    def _dial(self, kind: int, address: str, name: str) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        socket.setsockopt(zmq.RCVHWM, 0)
        socket.setsockopt(zmq.SNDHWM, 0)
        socket.setsockopt(zmq.IPV6, int("[" in address))
        if kind == zmq.DEALER and self._identity:
            socket.setsockopt(zmq.IDENTITY, self._identity)
        socket.connect(address)
        if kind != zmq.PUSH:
            self._poller.register(socket, zmq.POLLIN)
        self._names[socket] = name
        return socket

    def _turn(self) -> None:
        for ready, _ in self._poller.poll(0 if self._has_work() else None):
            if ready == self._wake_read:
                os.read(self._wake_read, 4096)
            else:
                self._read(ready)
        while self._jobs:
            self._jobs.popleft()()
        self._advance_start()
        self._answer()
        if self._has_work():
            self._step()

    def _read(self, socket: zmq.Socket[bytes]) -> None:
        for _ in range(256):  # then a step, so that a flood of ADDs does not delay every output
            try:
                frames = socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            record = Received(time.monotonic(), self._names[socket], frames)
            try:
                record.message = self._take(record)
            except wire.Refused as refused:
                self._fail(f"{record.socket}: {refused}")
            with self._changed:
                self.received.append(record)
                self._changed.notify_all()

    def _take(self, record: Received) -> Any:
        everything = b"".join(record.frames)
        if record.socket == "handshake":
            if len(record.frames) != 1:
                raise wire.Refused("nothing but an INIT of one frame was expected", everything)
            init = wire.decode_init(record.frames[0])
            # One that loads does not read a second, which a restarted coordinator may offer; it is the same at least.
            if self.init not in (None, init):
                raise wire.Refused("this INIT differs from the first", everything)
            self.init = init
            return init
        if record.socket == "publish":
            if record.frames == [b"READY"]:
                self.done.add("broadcast")
                return "READY"
            if len(record.frames) != 2 or record.frames[0] != wire.START_DP_WAVE:
                raise wire.Refused("neither READY nor START_DP_WAVE", everything)
            return wire.decode_start_wave(record.frames[1])
        if len(record.frames) != 2:
            raise wire.Refused(f"{len(record.frames)} frames on an input socket, not 2", everything)
        return self._take_input(int(record.socket.partition(":")[2]), *record.frames)

    def _take_input(self, client: int, kind: bytes, payload: bytes) -> Any:
        if kind == wire.ADD:
            return self._add(client, payload)
        if kind == wire.ABORT:
            ids = wire.decode_abort(payload)
            self._abort(ids)
            return ids
        if kind == wire.START_DP_WAVE:
            return wire.decode_start_wave(payload)
        if kind == wire.UTILITY:
            return self._question(client, wire.decode_utility(payload), payload)
        raise wire.Refused(f"unknown request type {kind.hex()}", payload)

    def _question(self, client: int, call: wire.UtilityCall, payload: bytes) -> wire.UtilityCall:
        if call.client_index != client:
            raise wire.Refused(f"UTILITY: client_index {call.client_index} on the socket of client {client}", payload)
        self._questions.append((client, call.call_id))
        return call

    def _answer(self) -> None:
        """A utility call is answered between two steps, and at the startup gate not yet; whatever is asked, the answer is
        no."""
        while self._questions and self.phase == "serving" and not self._muted:
            client, call_id = self._questions.pop(0)
            output = wire.UtilityOutput(call_id, None, [None, False])
            self._sockets.outputs[client].send(self._envelope([], {"utility_output": output}))

    def _add(self, client: int, payload: bytes) -> Request:
        add = wire.decode_add(payload, self.options.vocab_size)
        if add.client_index != client:
            raise wire.Refused(
                f"ADD: client_index {add.client_index} on the socket of client {client}", payload
            )
        if add.data_parallel_rank not in (None, self.rank):
            raise wire.Refused(
                f"ADD: data_parallel_rank {add.data_parallel_rank} at rank {self.rank}", payload
            )
        if add.request_id in self.requests:
            raise wire.Refused("ADD: this request_id is in flight", payload)
        if len(add.prompt_token_ids) + add.sampling_params.max_tokens > self.options.max_model_len:
            raise wire.Refused("ADD: prompt and max_tokens exceed max_model_len", payload)
        request = Request(add, payload, self.options)
        with self._changed:
            self.added.append(request)
            self.requests[request.id] = request
        return request

    def _abort(self, ids: list[str]) -> None:
        for wire_id in ids:
            request = self.requests.pop(wire_id, None)
            if request:  # an unknown id is harmless
                self._ids_to_name.setdefault(request.add.client_index, []).append(wire_id)
        with self._changed:
            self.aborted.extend(ids)

    def _advance_start(self) -> None:
        """Does every step of the start that can be done now, in the order of protocol.md 3."""
        if self.phase == "hello" and self.init:
            self._connect(self.init.addresses)
            self._enter("init")
        if self.phase != "init":
            return
        publish = self._sockets.publish
        if self._may("registration"):
            for socket in self._sockets.inputs:
                socket.send(self._registration())
        if "registration" in self.done and publish and self._may("subscription"):
            publish.send(b"\x01")
        gate = "broadcast" if publish else "registration"
        if gate in self.done and self._may("ready"):
            self._send_status("READY")
            self._poller.unregister(self._sockets.handshake)
            self._sockets.handshake.close(linger=1000)
            self._enter("serving")

    def _may(self, step: str) -> bool:
        if step in self._held or step in self.done:
            return False
        self.done.add(step)
        return True

    def _connect(self, addresses: wire.InitAddresses) -> None:
        sockets = self._sockets
        for client, address in enumerate(addresses.inputs):
            sockets.inputs.append(self._dial(zmq.DEALER, address, f"input:{client}"))
        for client, address in enumerate(addresses.outputs):
            sockets.outputs.append(self._dial(zmq.PUSH, address, f"output:{client}"))
        if addresses.coordinator_input and addresses.coordinator_output:
            sockets.publish = self._dial(zmq.XSUB, addresses.coordinator_input, "publish")
            sockets.stats = self._dial(zmq.PUSH, addresses.coordinator_output, "stats")

    def _registration(self) -> bytes:
        chosen = self.options.registration
        if isinstance(chosen, bytes):
            return chosen
        return wire.encode(chosen or wire.registration(self.rank, self.options.max_model_len))

    def _send_status(self, status: str) -> None:
        message: dict[str, Any] = {
            "status": status,
            "local": self.options.local,
            "headless": self.options.headless,
        }
        if status == "READY" and self.options.config_hash is not None:
            message["parallel_config_hash"] = self.options.config_hash
        self._sockets.handshake.send(wire.encode(message))

    def _has_work(self) -> bool:
        if self._muted:
            return False
        return bool(self.requests and not self._withhold) or bool(self._ids_to_name)

    def _step(self) -> None:
        """One engine step: every running request gets tokens, each client one message with all of its own."""
        if not self._withhold and any(request.kills_the_engine for request in self.requests.values()):
            self._closing = True
            return
        self._steps += 1
        batches: dict[int, list[Any]] = {client: [] for client in self._ids_to_name}
        packers: dict[int, Packer] = {}
        for request in [] if self._withhold else list(self.requests.values()):
            client = request.add.client_index
            packer = packers.setdefault(client, Packer(self.options.tensor_names, self.options.inline_below))
            output = request.advance(packer)
            batches.setdefault(client, []).extend([] if output is None else [output])
            if request.has_ended:
                del self.requests[request.id]
            if output is None:
                self._ids_to_name.setdefault(client, []).append(request.id)
        stats: wire.SchedulerStats | None = self._stats()
        for client in sorted(batches):
            named = self._ids_to_name.pop(client, None)
            envelope = {"scheduler_stats": stats, "finished_requests": named}
            frames = packers[client].frames if client in packers else []
            self._sockets.outputs[client].send_multipart([self._envelope(batches[client], envelope), *frames])
            stats = None  # one client a step has them
        self._tell_counts()

    def _envelope(self, outputs: list[Any], fields: dict[str, Any]) -> bytes:
        fields = {"engine_index": self.rank, "timestamp": time.monotonic()} | fields
        message = wire.EngineCoreOutputs(outputs=outputs, **fields)
        return wire.encode(wire.trimmed(message) if self.options.trim else message)

    def _stats(self) -> wire.SchedulerStats | None:
        if not self.options.stats:
            return None
        return wire.SchedulerStats(num_running_reqs=len(self.requests), step_counter=self._steps)

    def _tell_counts(self) -> None:
        counts = (0, len(self.requests))
        stats = self._stats()
        if self._sockets.stats and stats and counts != self._counts_told:
            self._counts_told = counts
            self._sockets.stats.send(self._envelope([], {"scheduler_stats": stats}))

    def _socket(self, name: str) -> zmq.Socket[bytes]:
        kind, _, index = name.partition(":")
        if index:
            return getattr(self._sockets, kind + "s")[int(index)]
        return getattr(self._sockets, kind)

    def _enter(self, phase: str) -> None:
        with self._changed:
            self.phase = phase
            self._changed.notify_all()

    def _fail(self, why: str) -> None:
        with self._changed:
            self.failures.append(why)
            self._changed.notify_all()
