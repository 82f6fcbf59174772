"""A whole cluster in a folder of its own: the config file, the real processes, engines, and a strict end.

WG_BUILD names the build folder. At the end every process must exit with 0 on SIGTERM, and no log may hold the words of
a sanitizer or a failed assertion.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from integration import client
from interop.engine import Engine

PATIENCE = 20.0  # seconds; a wait that takes longer has failed
BAD_WORDS = re.compile(
    r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error|Assertion|core dumped|Segmentation"
)
MODEL = "demo"


def build_folder() -> Path:
    folder = os.environ.get("WG_BUILD")
    assert folder, "set WG_BUILD to the build folder"
    return Path(folder).resolve()


def wait_until(condition: Callable[[], Any], what: str | Callable[[], str], timeout: float = PATIENCE) -> Any:
    """Polls until the condition holds; returns its value."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"no {what if isinstance(what, str) else what()} within {timeout} s")
        time.sleep(0.01)
    return value


class Process:
    """A program under test. Its standard error is its log; with --events, its standard output is a list of them."""

    def __init__(self, name: str, *command: str | Path) -> None:
        self.name = name
        self.lines: list[str] = []
        self.events: list[dict[str, Any]] = []
        self.may_end_with = {0}
        self._changed = threading.Condition()
        self._process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if "--events" in command else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if self._process.stdout:
            threading.Thread(target=self._read_events, daemon=True).start()

    @property
    def log(self) -> str:
        with self._changed:
            return "\n".join(self.lines)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def wait_log(self, pattern: str, timeout: float = PATIENCE) -> re.Match[str]:
        def search() -> re.Match[str] | None:
            return next(filter(None, (re.search(pattern, line) for line in self.lines)), None)

        with self._changed:
            self._changed.wait_for(lambda: search() or not self._reader.is_alive(), timeout)
            found = search()
        assert found, f"{self.name} never logged {pattern!r}; exit code {self._process.poll()}:\n{self.log}"
        return found

    def http_port(self) -> int:
        return int(self.wait_log(r"http=127\.0\.0\.1:(\d+)")[1])

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and gone."""
        self.may_end_with = {-signal.SIGKILL}
        self.signal(signal.SIGKILL)
        self.wait_exit()

    def wait_exit(self, timeout: float = PATIENCE) -> int:
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise AssertionError(f"{self.name} did not end within {timeout} s:\n{self.log}") from None
        self._reader.join(timeout)
        return code

    def terminate(self) -> int:
        """SIGTERM, and gone. Returns the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait_exit()

    def faults(self) -> list[str]:
        """What is wrong with the end of it; to be asked when it has ended."""
        code = self._process.returncode
        wrong = [] if code in self.may_end_with else [f"{self.name} ended with {code}"]
        return wrong + [f"{self.name} logged: {line}" for line in self.lines if BAD_WORDS.search(line)]

    def _read_events(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.endswith(b"\n"):  # a killed process may leave half a line
                self.events.append(json.loads(line))

    def _read(self) -> None:
        assert self._process.stderr
        for line in self._process.stderr:
            with self._changed:
                self.lines.append(line.decode("utf-8", "replace").rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


class Cluster:
    def __init__(
        self,
        ranks: int = 1,
        frontends: dict[str, str] | None = None,
        *,
        tcp: bool = False,
        lockstep: bool = False,
        stats_sockets: bool = True,
        eos_token_ids: list[int] | None = None,
        limits: dict[str, int] | None = None,
        timeouts: dict[str, int | str] | None = None,
        adapters: dict[str, tuple[int, str]] | None = None,
        model: str = "",
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wg-"))  # short: an ipc path has 107 bytes at most
        self.ranks = ranks
        self.frontends = frontends or {"fe0": f"0-{ranks - 1}"}
        self.processes: list[Process] = []
        self.engines: list[Engine] = []
        self._running: dict[str, Process] = {}
        self._ports: dict[str, int] = {}
        self._tcp = tcp
        self._reserved: list[socket.socket] = []
        self.address: dict[str, str] = {}
        names = ["handshake", "control", "input", "output"]
        names += ["engine_publish", "engine_output", "frontend_publish"] if stats_sockets else []
        coordinator = {name: self._new_address(name) for name in names}
        for name in self.frontends:
            self._new_address(f"{name}-input")
            self._new_address(f"{name}-output")
        for reserved in self._reserved:
            reserved.close()
        self.config = self.folder / "cluster.cfg"
        eos = ", ".join(map(str, eos_token_ids or [2]))
        model = model or f"vocab_size = {client.VOCAB_SIZE}; eos_token_ids = [ {eos} ];"
        loras = ", ".join(
            f'{{ name = "{name}"; id = {number}; path = "{path}"; }}'
            for name, (number, path) in (adapters or {}).items()
        )
        self.config.write_text(
            f'model = {{ name = "{MODEL}"; {model} }};\nadapters = ( {loras} );\n'
            + self._config_text(coordinator, lockstep, limits or {}, timeouts or {})
        )

    # --- starting ---

    def start_coordinator(self) -> Process:
        return self._start("coordinator", "wavegate-coordinator", "-c", self.config)

    def start_frontend(self, name: str = "fe0", descriptors: str = "") -> Process:
        """descriptors: its limit when it starts, "soft:hard"."""
        command = ("-c", self.config, "-n", name)
        before = ("prlimit", f"--nofile={descriptors}") if descriptors else ()
        return self._start(name, "wavegate-frontend", *command, before=before)

    def start_fake_engines(self, ranks: str | None = None, *options: str) -> Process:
        """The C program, for a range of ranks (all of them)."""
        ranks = ranks or f"0-{self.ranks - 1}"
        command = ("--handshake", self.address["handshake"], "--ranks", ranks, *options)
        return self._start(f"engines {ranks}", "tests/wavegate-fake-engine", *command)

    def start_engine(self, rank: int, **options: Any) -> Engine:
        """The Python one; see interop/engine.py for its options. `close` checks it."""
        engine = Engine(self.address["handshake"], rank, **options).start()
        self.engines.append(engine)
        return engine

    def start_engines(self, **options: Any) -> list[Engine]:
        """One Python engine for every rank."""
        return [self.start_engine(rank, **options) for rank in range(self.ranks)]

    def start(self) -> "Cluster":
        """The coordinator and every frontend; engines are up to the test."""
        self.start_coordinator()
        for name in self.frontends:
            self.start_frontend(name)
        return self

    def __getitem__(self, name: str) -> Process:
        return self._running[name]

    def port(self, name: str = "fe0") -> int:
        """The HTTP port of the process of that name."""
        if name not in self._ports:
            self._ports[name] = self._running[name].http_port()
        return self._ports[name]

    # --- looking ---

    def status(self, name: str = "fe0") -> dict[str, Any]:
        answer = client.get(self.port(name), "/status")
        assert answer.status == 200
        return answer.json()

    def wait_status(self, name: str, condition: Callable[[dict[str, Any]], Any], what: str) -> dict[str, Any]:
        """Polls /status until the condition holds; returns that status."""
        last: dict[str, Any] = {}

        def holds() -> Any:
            last.clear()
            last.update(self.status(name))
            return condition(last)

        wait_until(holds, lambda: f"{what} in the status of {name}: {last}")
        return last

    def wait_ready(self, *names: str) -> "Cluster":
        """Until the frontends (all that run) have every rank of theirs ready, and say so at /readyz."""
        for name in names or [name for name in self.frontends if name in self._running]:
            self.wait_status(
                name, lambda status: set(rank_states(status).values()) == {"ready"}, "every rank ready"
            )
            wait_until(lambda: client.get(self.port(name), "/readyz").status == 200, f"readiness of {name}")
        return self

    def wait_idle(self, *names: str) -> None:
        """Until no request is in flight, by every gauge there is."""
        for name in names or [name for name in self.frontends if name in self._running]:
            self.wait_status(name, idle, "idleness")

    def faults(self, name: str, socket_name: str) -> dict[str, int]:
        return self.status(name)["faults"].get(socket_name, {})

    def wait_fault(self, name: str, socket_name: str, cause: str, count: int = 1) -> None:
        def enough(status: dict[str, Any]) -> bool:
            return status["faults"].get(socket_name, {}).get(cause, 0) >= count

        self.wait_status(name, enough, f"{cause} on {socket_name}, {count} times")

    # --- ending ---

    def close(self) -> None:
        """Ends everything; raises all that was wrong."""
        wrong: list[str] = []
        for process in self.processes:
            if process.alive:
                process.signal(signal.SIGCONT)
                process.signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait_exit()
            except AssertionError as error:
                wrong.append(str(error))
        for engine in self.engines:
            try:
                engine.close()
            except AssertionError as error:
                wrong.append(str(error))
        for process in self.processes:
            wrong += process.faults()
            print(
                f"--- log of {process.name} ---", *process.lines[-200:], sep="\n"
            )  # pytest shows it on failure
        shutil.rmtree(self.folder)
        assert not wrong, "\n".join(wrong)

    # --- inside ---

    def _start(
        self, name: str, program: str, *options: str | Path, before: tuple[str, ...] = ()
    ) -> Process:
        path = build_folder() / program
        assert path.exists(), f"{path} is not built"
        process = Process(name, *before, path, *options)
        self.processes.append(process)
        self._running[name] = process
        self._ports.pop(name, None)
        return process

    def _new_address(self, name: str) -> str:
        if self._tcp:
            reserved = socket.socket()
            reserved.bind(("127.0.0.1", 0))
            self._reserved.append(reserved)  # held until all are chosen, so that they differ
            self.address[name] = f"tcp://127.0.0.1:{reserved.getsockname()[1]}"
        else:
            self.address[name] = f"ipc://{self.folder}/{name}"
        return self.address[name]

    def _config_text(
        self,
        coordinator: dict[str, str],
        lockstep: bool,
        limits: Mapping[str, int],
        timeouts: Mapping[str, int | str],
    ) -> str:
        limits = {"max_in_flight": 4096, "max_connections": 4096, **limits}
        timeouts = {"drain_ms": 0, **timeouts}  # a test that ends with requests in flight does not wait for them
        group = "lockstep = false;"
        if lockstep:
            port = self.master_port = _free_port()
            group = f'lockstep = true; master_ip = "127.0.0.1"; master_port = {port}; master_ports = [ {port}, {port + 1} ];'
        frontends = [
            f'  {{ name = "{name}"; ranks = "{ranks}"; http = "127.0.0.1:0"; '
            f'input = "{self.address[f"{name}-input"]}"; output = "{self.address[f"{name}-output"]}"; }}'
            for name, ranks in self.frontends.items()
        ]
        parts = [
            f"ranks = {{ count = {self.ranks}; {group} }};",
            "coordinator = {",
            *[f'  {name} = "{address}";' for name, address in coordinator.items()],
            '  http = "127.0.0.1:0";',
            f'  state_file = "{self.folder}/wave";' if lockstep else "",
            "};",
            "frontends = (",
            ",\n".join(frontends),
            ");",
            _group("limits", limits),
            _group("timeouts", timeouts),
        ]
        return "\n".join(filter(None, parts)) + "\n"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _group(name: str, values: Mapping[str, int | str]) -> str:
    return (
        f"{name} = {{ " + " ".join(f"{key} = {json.dumps(value)};" for key, value in values.items()) + " };"
        if values
        else ""
    )


def rank_states(status: dict[str, Any]) -> dict[int, str]:
    return {row["rank"]: row["state"] for row in status["ranks"]}


def rank_row(status: dict[str, Any], rank: int) -> dict[str, Any]:
    return next(row for row in status["ranks"] if row["rank"] == rank)


def idle(status: dict[str, Any]) -> bool:
    gauges: Iterable[int] = (row["in_flight"] for row in status["ranks"])
    return status["in_flight"] == 0 and status["buffered_bytes"] == 0 and not any(gauges)
