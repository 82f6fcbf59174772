#!/usr/bin/env bash
# Builds the fuzz targets with clang and runs each: tests/fuzz/run.sh [RUNS], by default 20000 executions. Begins at the
# seeds in corpus/; what it finds on the way stays in the build folder. Fails on a finding, and says where the input is:
# to see it again, run the target on that file alone.
# Debian: clang and libclang-rt-14-dev.
set -euo pipefail
cd "$(dirname "$0")/../.."

runs=${1:-20000}
build=build/fuzz

cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_COMPILER=clang -DWG_FUZZ=ON -DWG_TESTS=OFF \
    -DWG_SANITIZE=address,undefined >/dev/null
cmake --build $build --target fuzz_targets -- --quiet

failed=()
for source in tests/fuzz/fuzz_*.c; do
    target=$(basename "$source" .c)
    seeds=tests/fuzz/corpus/$target
    found=$build/corpus/$target
    mkdir -p "$found" $build/findings
    arguments=("$found")
    [ ! -d "$seeds" ] || arguments+=("$seeds")
    echo "== $target, $runs executions"
    if ! $build/tests/fuzz/"$target" -runs="$runs" -max_len=4096 -timeout=10 -rss_limit_mb=512 -print_final_stats=1 \
        -artifact_prefix="$build/findings/$target-" "${arguments[@]}" >"$build/$target.log" 2>&1; then
        tail -n 40 "$build/$target.log"
        failed+=("$target")
        continue
    fi
    grep -E '^(stat::number_of_executed_units|Done )' "$build/$target.log"
done

if [ ${#failed[@]} -gt 0 ]; then
    echo "findings of ${failed[*]}: see $build/findings" >&2
    exit 1
fi
