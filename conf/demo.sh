#!/usr/bin/env bash
# The main job on one machine: builds Wavegate, starts a coordinator, two frontends with different subsets of the ranks and
# four fake engine ranks from conf/local.cfg, and streams a request through each frontend. Then it stays until
# Ctrl-C; with --once it ends after the requests.
set -euo pipefail
cd "$(dirname "$0")/.."

once=false
case "${1:-}" in
"") ;;
--once) once=true ;;
*)
    echo "usage: conf/demo.sh [--once]" >&2
    exit 2
    ;;
esac

conf/install.sh build
cmake -S . -B build/demo -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo >/dev/null
cmake --build build/demo --target wavegate-coordinator wavegate-frontend wavegate-fake-engine \
    -- --quiet

logs=$(mktemp -d)
pids=()
stop() {
    trap - EXIT INT TERM
    [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
    wait
    rm -rf "$logs"
}
trap stop EXIT
trap 'exit 0' INT TERM

start() { # NAME COMMAND...
    local name=$1
    shift
    "$@" >"$logs/$name" 2>&1 &
    pids+=($!)
}

start coordinator build/demo/wavegate-coordinator -c conf/local.cfg
start fe0 build/demo/wavegate-frontend -c conf/local.cfg -n fe0
start fe1 build/demo/wavegate-frontend -c conf/local.cfg -n fe1
start engines build/demo/tests/wavegate-fake-engine --handshake tcp://127.0.0.1:29550 --ranks 0-3

wait_ready() { # URL: asked again until it says 200, or a process has ended
    local deadline=$((SECONDS + 30))
    until curl -sf -o /dev/null "$1"; do
        if [ $SECONDS -ge $deadline ] || [ "$(jobs -pr | wc -l)" -lt ${#pids[@]} ]; then
            echo "not ready: $1" >&2
            cat "$logs"/* >&2
            exit 1
        fi
        sleep 0.1
    done
}
for port in 9000 8000 8001; do
    wait_ready "http://127.0.0.1:$port/readyz"
done

generate() { # PORT CURL-ARGUMENTS...
    local port=$1
    shift
    curl -sN "http://127.0.0.1:$port/inference/v1/generate" -H 'Content-Type: application/json' "$@"
}

request='{"model": "demo", "token_ids": [11, 12, 13], "stream": true, "stream_options": {"include_usage": true},
          "sampling_params": {"max_tokens": 4}}'
echo
echo "== a stream through frontend fe0 (ranks 0, 1, 2, 3)"
generate 8000 -d "$request"
echo "== a stream through frontend fe1 (ranks 0, 2)"
generate 8001 -d "$request"
echo "== rank 1 asked of frontend fe1, which does not have it"
generate 8001 -H 'X-data-parallel-rank: 1' -d "$request"
echo
echo
echo "== listening"
sed -n 's/.*(\([^)]*\)).* listening \(.*\)/\1: \2/p' "$logs/coordinator" "$logs/fe0" "$logs/fe1"

$once && exit 0
echo
echo "Try: curl -s http://127.0.0.1:9000/status     Ctrl-C stops everything."
# A process that ends by itself ends the demo, too.
wait -n
echo "a process has ended:" >&2
tail -n 2 "$logs"/* >&2
exit 1
