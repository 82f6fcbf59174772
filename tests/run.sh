#!/usr/bin/env bash
# Installs what the tests need, builds with sanitizers, and runs everything: format, layers, lint, unit tests, fuzz targets,
# integration tests. On the machine's own packages; Python's come into a virtual environment in the build folder.
set -euo pipefail
cd "$(dirname "$0")/.."

conf/install.sh test
build=build/test

echo "== format"
git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror

echo "== layers"
if grep -nE '#include "(coordinator|frontend)/' common/*; then
    echo "common/ must not include upward" >&2
    exit 1
fi
if grep -nE '#include "frontend/' coordinator/* || grep -nE '#include "coordinator/' frontend/*; then
    echo "coordinator/ and frontend/ must not include each other" >&2
    exit 1
fi

echo "== build (address and undefined behaviour sanitizers)"
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Debug -DWG_SANITIZE=address,undefined >/dev/null
cmake --build $build -- --quiet

echo "== lint"
git ls-files '*.c' | xargs -P "$(nproc)" -n 4 clang-tidy -p $build --quiet 2>/dev/null

echo "== unit tests"
ctest --test-dir $build --output-on-failure -j "$(nproc)"

echo "== fuzz targets"
tests/fuzz/run.sh

echo "== integration tests"
[ -x $build/venv/bin/python ] || python3 -m venv $build/venv
$build/venv/bin/pip install -q --disable-pip-version-check -r tests/requirements.txt
export WG_BUILD="$PWD/$build"
cd tests
"$WG_BUILD/venv/bin/python" -m pytest -q
