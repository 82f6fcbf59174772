import resource
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from integration.cluster import Cluster

NewCluster = Callable[..., Cluster]


@pytest.fixture(scope="session", autouse=True)
def enough_descriptors() -> None:
    """Two thousand streams and more; the processes under test inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))


@contextmanager
def _ended(cluster: Cluster) -> Iterator[Cluster]:
    try:
        yield cluster
    finally:
        cluster.close()


def _maker(stack: ExitStack) -> NewCluster:
    return lambda *args, **options: stack.enter_context(_ended(Cluster(*args, **options)))


@pytest.fixture
def new_cluster() -> Iterator[NewCluster]:
    """Makes clusters (the arguments are those of Cluster) that are ended, and checked, after the test."""
    with ExitStack() as stack:
        yield _maker(stack)


@pytest.fixture(scope="module")
def shared_cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """One cluster for a whole file, made by its function `make_cluster`: for tests that leave no trace in it."""
    with ExitStack() as stack:
        yield request.module.make_cluster(_maker(stack))
