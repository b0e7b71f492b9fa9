"""Tasks, simulation, episode store, rendering and export of demomill."""

__version__ = "0.1.0"
