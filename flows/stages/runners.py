"""What runs the shards of a recording: threads of the flow's process, or Dask."""

from typing import Any, Literal

from prefect.context import FlowRunContext
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from pipeline.errors import UserError

Runner = Literal["threads", "dask"]


def task_runner(kind: Runner, workers: int) -> TaskRunner[Any]:
    """Threads, or Dask: the cluster that Dask's configuration names (``DASK_SCHEDULER_ADDRESS``), else one made here.

    Raises:
        UserError: if ``prefect-dask`` is not installed.
    """
    if kind == "threads":
        return ThreadPoolTaskRunner(max_workers=workers)
    try:
        import dask
        from prefect_dask.task_runners import DaskTaskRunner
    except ImportError:
        raise UserError("runner is 'dask', but prefect-dask is not installed; install it, or use 'threads'") from None
    if address := dask.config.get("scheduler-address", None):
        return DaskTaskRunner(address=address)
    return DaskTaskRunner(cluster_kwargs={"n_workers": workers, "threads_per_worker": 1})


def in_this_process() -> bool:
    """Whether the tasks of the flow run that is under way can report here themselves."""
    context = FlowRunContext.get()
    return context is None or isinstance(context.task_runner, ThreadPoolTaskRunner)
