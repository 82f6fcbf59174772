#!/usr/bin/env bash
# Installs the Debian packages that are missing. "build": what the programs and the demo need; "test": the tests' too.
set -euo pipefail

packages=(gcc libc6-dev cmake ninja-build pkg-config curl libzmq3-dev libczmq-dev libmsgpack-dev libconfig-dev
    libmicrohttpd-dev libjansson-dev libcmocka-dev)
if [ "${1:-build}" = test ]; then
    packages+=(clang clang-format clang-tidy libclang-rt-14-dev iproute2 python3 python3-venv)
fi

missing=()
for package in "${packages[@]}"; do
    # A metapackage's like may come from elsewhere (gcc of another version), so ask for the package itself.
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
echo "installing: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
