"""The command line and the config file: what is wrong is said with file, line, key and reason, and exit code 2 (B007)."""

import json
import math
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.cluster import Cluster, build_folder
from integration.conftest import NewCluster

PROGRAMS = ("wavegate-coordinator", "wavegate-frontend")


def run(program: str, *options: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(part) for part in (build_folder() / program, *options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)


def check(program: str, config: Path, *options: str) -> subprocess.CompletedProcess[str]:
    name = ("-n", "fe0") if program == "wavegate-frontend" else ()
    return run(program, "-c", config, *name, *options)


@pytest.fixture
def cluster(new_cluster: NewCluster) -> Cluster:
    return new_cluster(2, {"fe0": "0-1", "fe1": "0"}, timeouts={"waiting_log_ms": 1000})


Change = Callable[[str], str]


def swap(old: str, new: str) -> Change:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


def without(key: str) -> Change:
    return lambda text: re.sub(rf"^  {key} = .*\n", "", text, flags=re.M)


def at_line(pattern: str) -> Callable[[str], int]:
    """The line of the broken file that the message is to name."""
    return lambda text: next(
        n for n, line in enumerate(text.split("\n"), start=1) if re.search(pattern, line)
    )


ADAPTER = '{{ name = "{0}"; id = 1; path = "/loras/{0}"; }}'

# name -> change of a good file, key in the message, line in the message (None: any)
BROKEN: dict[str, tuple[Change, str, Callable[[str], int] | None]] = {
    "unknown_group": (lambda text: text + 'colour = "red";\n', "colour", at_line("colour")),
    "unknown_key": (
        swap("lockstep = false;", "lockstep = false; colour = 1;"),
        "ranks.colour",
        at_line("colour"),
    ),
    "unknown_key_of_a_frontend": (
        swap('ranks = "0";', 'ranks = "0"; x = 1;'),
        r"frontends\[1\]\.x",
        at_line("x = 1"),
    ),
    "text_for_a_number": (swap("count = 2;", 'count = "two";'), "ranks.count", at_line("count")),
    "float_for_a_number": (swap("count = 2;", "count = 2.5;"), "ranks.count", at_line("count")),
    "number_for_a_bool": (swap("lockstep = false;", "lockstep = 0;"), "ranks.lockstep", at_line("lockstep")),
    "number_out_of_range": (swap("count = 2;", "count = 65537;"), "ranks.count", at_line("count")),
    "zero_ranks": (swap("count = 2;", "count = 0;"), "ranks.count", at_line("count")),
    "frontend_name_twice": (swap('"fe1"', '"fe0"'), r"frontends\[1\]\.name", at_line("fe1-input")),
    "address_twice": (swap("fe1-input", "fe0-input"), r"frontends\[1\]\.input", at_line("fe1-output")),
    "address_of_the_coordinator": (
        swap("fe1-input", "handshake"),
        r"frontends\[1\]\.input",
        at_line("fe1-output"),
    ),
    "rank_in_no_frontend": (swap('"0-1"', '"0"'), "frontends", None),
    "rank_outside": (swap('ranks = "0";', 'ranks = "0-2";'), r"frontends\[1\]\.ranks", at_line("0-2")),
    "range_without_an_end": (
        swap('ranks = "0";', 'ranks = "0-";'),
        r"frontends\[1\]\.ranks",
        at_line('"0-"'),
    ),
    "range_backwards": (swap('ranks = "0";', 'ranks = "1-0";'), r"frontends\[1\]\.ranks", at_line("1-0")),
    "range_of_words": (swap('ranks = "0";', 'ranks = "all";'), r"frontends\[1\]\.ranks", at_line('"all"')),
    "no_ranks": (swap('ranks = "0";', 'ranks = "";'), r"frontends\[1\]\.ranks", at_line('ranks = ""')),
    "ipc_path_too_long": (swap("/handshake", "/" + "h" * 107), "coordinator.handshake", at_line("hhh")),
    "no_scheme": (swap("ipc://", "//"), "coordinator.handshake", at_line("handshake")),
    "other_scheme": (swap("ipc://", "udp://"), "coordinator.handshake", at_line("handshake")),
    "http_by_name": (swap('"127.0.0.1:0"', '"example.org:0"'), "coordinator.http", at_line("example.org")),
    "http_port_too_high": (swap('"127.0.0.1:0"', '"127.0.0.1:65536"'), "coordinator.http", at_line("65536")),
    "key_missing": (without("handshake"), "coordinator.handshake", None),
    "one_stats_socket_missing": (without("engine_output"), "coordinator.engine_output", None),
    "lockstep_without_its_keys": (swap("lockstep = false;", "lockstep = true;"), "ranks.master_ip", None),
    "eos_outside_the_vocabulary": (swap("[ 2 ]", "[ 32000 ]"), "model.eos_token_ids", at_line("32000 ]")),
    "timeout_below_the_interval": (
        swap("waiting_log_ms = 1000;", "heartbeat_interval_ms = 3000; heartbeat_timeout_ms = 2000;"),
        "timeouts.heartbeat_timeout_ms",
        at_line("= 2000"),
    ),
    "default_out_of_range": (
        lambda text: text + "defaults = { temperature = 1.0; top_p = 0.0; };\n",
        "defaults.top_p",
        at_line("top_p"),
    ),
    "adapter_named_like_the_model": (
        swap("adapters = (  )", 'adapters = (\n{ name = "demo"; id = 1; path = "/loras/x"; } )'),
        r"adapters\[0\]\.name",
        at_line("/loras/x"),
    ),
    "adapter_id_twice": (
        swap("adapters = (  )", "adapters = (\n" + ADAPTER.format("a") + ",\n" + ADAPTER.format("b") + ")"),
        r"adapters\[1\]\.id",
        at_line("/loras/b"),
    ),
    "no_frontends": (
        lambda text: re.sub(r"frontends = \(.*?\n\);", "frontends = ( );", text, flags=re.S),
        "frontends",
        None,
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_line_key_and_reason(cluster: Cluster, program: str, name: str) -> None:
    change, key, line_of = BROKEN[name]
    text = change(cluster.config.read_text())
    cluster.config.write_text(text)
    for options in ((), ("--check",)):
        result = check(program, cluster.config, *options)
        assert result.returncode == 2, result
        found = re.search(rf"{re.escape(str(cluster.config))}:(\d+): {key}: (.+)", result.stderr)
        assert found, result.stderr
        assert not line_of or int(found[1]) == line_of(text), result.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_syntax_error_is_told_with_its_line(cluster: Cluster, program: str) -> None:
    text = cluster.config.read_text().replace("count = 2;", "count = = 2;")
    cluster.config.write_text(text)
    result = check(program, cluster.config)
    assert result.returncode == 2
    assert f"{cluster.config}:{at_line('= =')(text)}: " in result.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_file_that_is_not_there_is_named(cluster: Cluster, program: str) -> None:
    result = check(program, cluster.folder / "nothing.cfg")
    assert result.returncode == 2 and "nothing.cfg" in result.stderr


def test_a_frontend_that_is_not_in_the_file_is_refused(cluster: Cluster) -> None:
    result = run("wavegate-frontend", "-c", cluster.config, "-n", "fe9")
    assert result.returncode == 2 and "fe9" in result.stderr


@pytest.mark.parametrize("options", [(), ("-c",), ("--colour",), ("-n", "fe0")])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_wrong_command_line_is_refused(program: str, options: tuple[str, ...]) -> None:
    result = run(program, *options)
    assert result.returncode == 2 and result.stderr


@pytest.mark.parametrize("program", [*PROGRAMS, "tests/wavegate-fake-engine"])
def test_help_and_version_are_printed(program: str) -> None:
    for option, text in (("--help", "usage"), ("--version", r"\d+\.\d+\.\d+")):
        result = run(program, option)
        assert result.returncode == 0 and re.search(text, result.stdout, re.IGNORECASE), result


@pytest.mark.parametrize("program", PROGRAMS)
def test_check_prints_a_config_that_means_the_same(cluster: Cluster, program: str) -> None:
    first = check(program, cluster.config, "--check")
    assert first.returncode == 0, first.stderr
    again = cluster.folder / "effective.cfg"
    again.write_text(first.stdout)
    second = check(program, again, "--check")
    assert (second.returncode, second.stdout) == (0, first.stdout)


@pytest.fixture
def model_cluster(new_cluster: NewCluster, tmp_path: Path) -> Cluster:
    """All that the configuration says of its model is where it is."""
    return new_cluster(1, {"fe0": "0"}, model=f'path = "{tmp_path}";', adapters={"sql": (1, "/loras/sql")})


def test_frontends_read_what_is_left_open_from_the_models_files(model_cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"time_step_limit": [0.0, math.inf], "vocab_size": 1000, "eos_token_id": 7})
    )
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, 9], "temperature": 0.6}))
    first = check("wavegate-frontend", model_cluster.config, "--check")
    assert first.returncode == 0, first.stderr
    for line in ("vocab_size = 1000;", "eos_token_ids = [ 7, 9 ];", "temperature = 0.6;", "top_p = 1.0;"):
        assert line in first.stdout, first.stdout
    again = model_cluster.folder / "effective.cfg"
    again.write_text(first.stdout)
    second = check("wavegate-frontend", again, "--check")
    assert (second.returncode, second.stdout) == (0, first.stdout)


@pytest.mark.parametrize("options", [(), ("--check",)])
def test_a_frontend_refuses_a_model_without_files(
    model_cluster: Cluster, tmp_path: Path, options: tuple[str, ...]
) -> None:
    result = check("wavegate-frontend", model_cluster.config, *options)
    assert result.returncode == 2
    assert f"{tmp_path}/config.json:0: model.path: No such file or directory" in result.stderr


def test_a_coordinator_needs_no_model_files(model_cluster: Cluster) -> None:
    result = check("wavegate-coordinator", model_cluster.config, "--check")
    assert result.returncode == 0, result.stderr
    assert 'name = "sql";' in result.stdout and "vocab_size" not in result.stdout


def test_naming_rank_0_alone_is_no_other_mode_than_a_range(new_cluster: NewCluster) -> None:
    printed = set()
    for ranks in ("0", "0-0"):
        cluster = new_cluster(1, {"fe0": ranks})
        result = check("wavegate-frontend", cluster.config, "--check")
        assert result.returncode == 0
        printed.add(result.stdout.replace(str(cluster.folder), ""))
    assert len(printed) == 1
