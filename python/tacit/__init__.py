"""Acknowledgments on wireless links: simulate, compare, audit, reproduce.

>>> import tacit
>>> run = tacit.run("wlan-11n-150", scheme="hack-batch", quick=True)
>>> run.goodput_bps > 120e6
True
"""

from . import experiments, rohc
from ._calls import (
    advise,
    audit,
    compare,
    figure,
    figures,
    load,
    metrics,
    run,
    scenarios,
    schemes,
    theory,
    why,
)
from ._frames import Frame
from ._native import VERSION, InputError, TacitError
from ._progress import TacitWarning
from ._results import Comparison, Figure, Result, Run
from ._scenario import Scenario
from ._sweep import Sweep, sweep
from .experiments import AckPolicy, Controller, OwnScheme, Scheduler

#: Without the commit, which ``tacit --version`` names too.
__version__ = VERSION.split()[0]

__all__ = [
    "AckPolicy",
    "Comparison",
    "Controller",
    "Figure",
    "Frame",
    "InputError",
    "OwnScheme",
    "Result",
    "Run",
    "Scenario",
    "Scheduler",
    "Sweep",
    "TacitError",
    "TacitWarning",
    "__version__",
    "advise",
    "audit",
    "compare",
    "experiments",
    "figure",
    "figures",
    "load",
    "metrics",
    "rohc",
    "run",
    "scenarios",
    "schemes",
    "sweep",
    "theory",
    "why",
]
