"""Engine `ray`: the same jobs as Ray tasks; results come back to the driver.

Ray schedules the tasks, and runs a task again when its worker or node dies. Only the
driver writes, once per job, so that nothing is lost or doubled. Ray is imported only
here, and games only after joining the cluster: importing them starts JAX, and Ray forks.
"""

import contextlib
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from termdp.provenance import version_of

if TYPE_CHECKING:
    from termdp.bench.events import Event
    from termdp.bench.execute import JobResult
    from termdp.bench.plan import BenchJob

RETRIES = 5
REACH_SECONDS = 5.0
_OPEN_TO_OTHERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
Engine = Callable[[Sequence["BenchJob"]], Iterator["Event"]]


def connect(address: str | None = None) -> Engine:
    """Join a cluster, or start one that only this machine can reach.

    Args:
        address: `host:port`, `ray://host:port` or `auto`; None starts a local one.

    Returns:
        The engine: a function from jobs to events. It leaves the cluster at the end.
    """
    if address is None:
        # Read when ray is imported. The name is Ray's; it does so on Linux, too.
        os.environ.setdefault(_OPEN_TO_OTHERS, "0")
    ray = _import_ray()
    if address is not None and address != "auto":
        _check_reachable(address)
    try:
        with _private_token():
            ray.init(
                address=address or "local",
                log_to_driver=False,
                logging_level="error",
                **({} if address else {"include_dashboard": False}),
            )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ValueError(
            f"expected a Ray cluster at {address or 'this machine'}, but it cannot be "
            f"joined: {' '.join(str(error).split())[:300]}"
        ) from error
    return run_on_cluster


@contextlib.contextmanager
def _private_token() -> Iterator[None]:
    """Make Ray's token file private: anybody with the token can run code here."""
    token = Path.home() / ".ray" / "auth_token"
    before = os.umask(0o077)
    try:
        if token.exists():
            token.chmod(0o600)
        yield
    finally:
        os.umask(before)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ValueError(
            "expected the package ray for the engine ray, but it is not installed: "
            "pip install 'termdp[ray]'"
        ) from None
    return ray


def _check_reachable(address: str) -> None:
    """Check an address first: Ray itself waits long for one that does not answer."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError(
            f"expected an address host:port, ray://host:port or auto, got {address!r}"
        )
    try:
        with socket.create_connection((host, int(port)), timeout=REACH_SECONDS):
            pass
    except OSError as error:
        raise ValueError(
            f"expected a Ray cluster at {address}, but nothing answers there ({error}): "
            "start one with `ray start --head`, or leave out --address"
        ) from error


def platform() -> str:
    """Whether the joined cluster computes on gpu or cpu."""
    return "gpu" if _import_ray().cluster_resources().get("GPU", 0) > 0 else "cpu"


def jobs_at_once() -> int:
    """How many jobs the joined cluster runs at once."""
    resources = _import_ray().cluster_resources()
    return max(1, int(resources.get("GPU", 0) or resources.get("CPU", 0)))


def run_on_cluster(jobs: Sequence["BenchJob"]) -> Iterator["Event"]:
    """Run jobs as tasks of the joined cluster."""
    from termdp.bench.events import Event

    ray = _import_ray()
    needs: dict[str, Any] = {"num_cpus": 1, "max_retries": RETRIES}
    if platform() == "gpu":
        # A worker keeps the GPU's memory until it ends: one job each.
        needs |= {"num_gpus": 1, "max_calls": 1}
    task = ray.remote(**needs)(work)
    waiting: dict[Any, BenchJob] = {}
    try:
        for job in jobs:
            waiting[task.remote(job, version_of("termdp"))] = job
            yield Event("sent", job)
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1)
            for reference in ready:
                yield _outcome(ray, reference, waiting.pop(reference))
    finally:
        for reference in waiting:
            ray.cancel(reference, force=True)
        ray.shutdown()


def _outcome(ray: Any, reference: Any, job: "BenchJob") -> "Event":
    from termdp.bench.events import Event, sentence

    try:
        return Event("finished", job, 1.0, ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        return Event("failed", job, error=sentence(error.cause or error))
    except ray.exceptions.RayError as error:
        return Event("failed", job, error=sentence(error))


def work(job: "BenchJob", version: str) -> "JobResult":
    """A worker's task: one job on all devices given to it."""
    here = version_of("termdp")
    if here != version:
        raise ValueError(
            f"expected termdp {version} on every node, as on the driver, got {here}"
        )
    import jax

    from termdp.bench.execute import compile_job, run_job

    devices = jax.devices()
    return run_job(job, compile_job(job, devices if len(devices) > 1 else None))
