"""The same analyses over many recordings, in this process, on Dask or on Spark."""

from tracepoint.fleet.opening import Fleet, open_fleet
from tracepoint.fleet.result import FleetResult
from tracepoint.fleet.spark import register_source

__all__ = ["Fleet", "FleetResult", "open_fleet", "register_source"]
