"""What the coordinator and a frontend use of a core while nothing happens, with many ranks connected. Nothing is
asserted.

    cd tests && WG_BUILD=../build/demo ../build/test/venv/bin/python -m bench.idle_cpu [--ranks 64] [--lockstep]
"""

from __future__ import annotations

import argparse
import time

from integration.cluster import Cluster
from integration.usage import cpu_seconds, descriptors, rss_bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--lockstep", action="store_true")
    options = parser.parse_args()
    cluster = Cluster(options.ranks, lockstep=options.lockstep, tcp=True).start()
    try:
        cluster.start_fake_engines()
        cluster.wait_ready()
        time.sleep(1.0)  # what the start set going has come to rest
        processes = [cluster["coordinator"], cluster["fe0"]]
        before = [cpu_seconds(process.pid) for process in processes]
        begun = time.monotonic()
        time.sleep(options.seconds)
        lasted = time.monotonic() - begun
        for process, used in zip(processes, before, strict=True):
            share = (cpu_seconds(process.pid) - used) / lasted
            print(
                f"{process.name} with {options.ranks} idle ranks: {share * 100:.2f} % of a core,",
                f"{rss_bytes(process.pid) >> 20} MiB, {descriptors(process.pid)} descriptors",
            )
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
