"""The commands of tacit's command line, as functions."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from . import _native
from ._errors import checked_seed, checked_seeds
from ._frames import Frame
from ._progress import Progress, Told
from ._results import Comparison, Figure, Result, Run
from ._scenario import AnyPath, ScenarioLike, Settings, counts, parts
from .experiments import AckPolicy, Controller, Scheduler, SchemeLike, schemes_of

if TYPE_CHECKING:
    from ._sweep import Sweep

MakesPolicy = Callable[[], AckPolicy]
MakesController = Callable[[int, int], Controller]
MakesScheduler = Callable[[], Scheduler]


def scenarios() -> Frame:
    """The scenarios that come with tacit: ``name``, ``description``."""
    return Frame(_native.scenarios())


def schemes() -> Frame:
    """The schemes: ``name``, ``summary``, and whether they are compared ``by_default``."""
    return Frame(_native.schemes())


def metrics() -> Frame:
    """The metrics of each run: ``name``, whose end is the unit, and ``summary``."""
    return Frame(_native.metrics())


def figures() -> Frame:
    """The figures that can be made: ``id``, ``title``, ``paper``."""
    return Frame(_native.figures())


def run(
    scenario: ScenarioLike = _native.DEFAULT_SCENARIO,
    settings: Optional[Settings] = None,
    *,
    scheme: str | None = None,
    clients: int | None = None,
    seed: int = 1,
    quick: bool = False,
    wire: bool = False,
    cache: bool = True,
    ack_policy: MakesPolicy | None = None,
    controller: MakesController | None = None,
    scheduler: MakesScheduler | None = None,
    pcap: AnyPath | None = None,
) -> Run:
    """Runs a scenario once.

    ``scheme``: None is the scenario as written. ``quick``: some 5 s. ``wire``: every packet is encoded and decoded on its way, and
    the digest stays. ``cache``: a run that was made before, by this very build, is not made again.

    ``ack_policy``, ``controller`` and ``scheduler`` are classes of your own, see :class:`tacit.AckPolicy`,
    :class:`tacit.Controller` and :class:`tacit.Scheduler`; then nothing is cached. ``pcap`` is a file for a capture of the air,
    for Wireshark.

    Raises :class:`tacit.InputError` for input that is not allowed, :class:`tacit.TacitError` for a run that broke an invariant,
    and the exceptions of a policy, controller or scheduler.
    """
    source, set_ = parts(scenario, settings)
    answer = _native.run(
        source,
        set_,
        scheme=scheme,
        clients=clients,
        seed=checked_seed(seed),
        quick=quick,
        wire=wire,
        cache=cache,
        acks=ack_policy,
        controller=controller,
        scheduler=scheduler,
        pcap=None if pcap is None else fspath(pcap),
    )
    return Run(answer)


def compare(
    scenario: ScenarioLike = _native.DEFAULT_SCENARIO,
    settings: Optional[Settings] = None,
    *,
    schemes: Sequence[SchemeLike] = (),
    clients: int | Sequence[int] = (),
    mix: Mapping[str, int] | None = None,
    seeds: int | None = None,
    quick: bool = False,
    directory: AnyPath | None = None,
    cache: bool = True,
    progress: Told = None,
) -> Comparison:
    """Runs a scenario under each scheme, side by side on the same draws.

    No ``schemes`` are those compared by default, ``["all"]`` is every one; classes of your own are schemes, too, see
    :class:`tacit.OwnScheme`. No ``clients`` are the scenario's. With a ``directory`` the runs and the HTML report are kept there, and
    runs found in it are not made again, but for those of your own classes. Ctrl-C ends it between two runs.

    ``mix={"tack": 1, "stock": 9}`` is ten clients of which one uses TACK: its rows have what that client gains
    (``adopter_gain_over_stock``) and what the others do (``other_gain_over_stock``). It takes the place of ``schemes`` and
    ``clients``.

    Raises :class:`tacit.InputError` for input that is not allowed, before anything runs, and the exceptions of your classes.
    """
    source, set_ = parts(scenario, settings)
    if mix is not None and (schemes or clients):
        raise TypeError("mix says which schemes and how many clients: leave out schemes and clients")
    names, own = schemes_of(schemes)
    with Progress(progress) as told:
        answer = _native.compare(
            source,
            set_,
            clients=counts(clients),
            schemes=names,
            own=own,
            mix=None if mix is None else ",".join(f"{name}={count}" for name, count in mix.items()),
            seeds=checked_seeds(seeds),
            quick=quick,
            directory=None if directory is None else fspath(directory),
            cache=cache,
            progress=told,
        )
    return Comparison(answer, None if directory is None else Path(directory))


def load(directory: AnyPath) -> Comparison | Sweep:
    """Loads the results that :func:`compare` or :func:`tacit.sweep`, or their commands, kept in ``directory``.

    Of a comparison it draws the report again. Of a sweep it loads the runs that are there, and needs pyarrow.
    """
    from . import _sweep

    kept = Path(directory)
    if _sweep.Sweep.is_kept_in(kept):
        return _sweep.load_sweep(kept)
    return Comparison(_native.report(fspath(directory)), kept)


def why(
    subject: ScenarioLike | Comparison = _native.DEFAULT_SCENARIO,
    settings: Optional[Settings] = None,
    *,
    schemes: Sequence[str] = (),
    station: bool = False,
    clients: int | Sequence[int] = (),
    seeds: int | None = None,
    quick: bool = False,
    cache: bool = True,
    progress: Told = None,
) -> Result:
    """Explains why one of two schemes carries more: a row (table ``parts``) for each use of the bottleneck's time.

    ``subject`` is a scenario, which is run, or a :class:`Comparison` whose results are kept in a directory. No ``schemes``
    are the best and stock. ``station`` accounts for the time of the first flow's station instead.
    """
    directory: str | None = None
    if isinstance(subject, Comparison):
        if subject.directory is None:
            raise ValueError("the results of this comparison are not kept: give compare() a directory")
        directory, subject = fspath(subject.directory), ""
    source, set_ = parts(subject, settings)
    with Progress(progress) as told:
        answer = _native.why(
            source,
            set_,
            clients=counts(clients),
            schemes=list(schemes),
            station=station,
            seeds=checked_seeds(seeds),
            quick=quick,
            directory=directory,
            cache=cache,
            progress=told,
        )
    return Result(answer, "parts")


def advise(
    scenario: ScenarioLike | None = None,
    settings: Optional[Settings] = None,
    *,
    phy: str | None = None,
    rate: str | None = None,
    rtt: str | None = None,
    clients: int | None = None,
    uploads: bool = False,
    capture: AnyPath | None = None,
    seeds: Optional[int] = None,
    max_seeds: Optional[int] = None,
    quick: bool = False,
    cache: bool = True,
    progress: Told = None,
) -> Result:
    """Advises which ACK frequency or mechanism suits a link, with gains and costs.

    Table ``choices`` has a row for each change that one side could make, table ``rows`` one for each scheme that was run.

    The link is a scenario, or a ``phy`` such as ``"802.11n"`` and a ``rate`` such as ``"150Mbps"``. A ``capture`` (pcap, pcapng) tells
    round-trip time, clients and the receivers' ACK frequency. Every scheme runs with ``seeds`` (3), those whose intervals overlap with up
    to ``max_seeds`` (12, with ``quick`` 6).
    """
    source, set_ = parts("" if scenario is None else scenario, settings)
    with Progress(progress) as told:
        answer = _native.advise(
            None if scenario is None else source,
            set_,
            phy=phy,
            rate=rate,
            rtt=rtt,
            clients=clients,
            uploads=uploads,
            capture=None if capture is None else fspath(capture),
            seeds=checked_seeds(seeds),
            max_seeds=checked_seeds(max_seeds, "max_seeds"),
            quick=quick,
            cache=cache,
            progress=told,
        )
    return Result(answer, "choices")


def figure(
    id: str,
    *,
    quick: bool = False,
    directory: AnyPath | None = None,
    from_directory: AnyPath | None = None,
    cache: bool = True,
    progress: Told = None,
) -> Figure:
    """Makes a figure of a paper again, and holds its claims against the result.

    ``quick``: fewer and shorter runs. ``directory`` keeps pictures and results; ``from_directory`` judges kept results, and runs
    nothing. Figures of live hops are skipped, and :attr:`Figure.skipped` says so: they need a process of one thread.
    """
    with Progress(progress) as told, tempfile.TemporaryDirectory() as nowhere:
        kept = directory if directory is not None else from_directory
        answer = _native.figure(
            id,
            quick=quick,
            directory=fspath(nowhere if kept is None else kept),
            from_directory=None if from_directory is None else fspath(from_directory),
            cache=cache,
            progress=told,
        )
        picture = Figure(answer, None).data["svg"]
        svg = None if picture is None else Path(picture).read_text(encoding="utf-8")
    return Figure(answer, svg)


def theory(phy: str = "802.11n", rate: str = "150Mbps") -> Result:
    """Computes the capacity of a Wi-Fi hop in closed form. The numbers are in :attr:`Result.data`."""
    return Result(_native.theory(phy, rate))


def audit(capture: AnyPath, *, phy: str | None = None, rate: str | None = None, rtt: str = "20ms") -> Result:
    """Computes the cost of the acknowledgments in a capture (pcap, pcapng) on a hop, and predicts it for each scheme.

    Without ``phy`` and ``rate`` the hop is the one of most data in the capture, where frames have radiotap headers, else
    802.11n at 150 Mb/s. Table ``flows`` has a row for each connection, table ``schemes`` one for each scheme, table ``sent_as``
    one for each way in which 802.11 frames were sent.
    """
    return Result(_native.audit(fspath(capture), phy, rate, rtt), "flows")
