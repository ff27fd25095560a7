from collections.abc import Callable, Sequence
from typing import final

__all__ = [
    "Acknowledged",
    "Answer",
    "Arrival",
    "Compressor",
    "DEFAULT_SCENARIO",
    "Decompressor",
    "InputError",
    "ReadyUser",
    "Sweep",
    "Table",
    "TacitError",
    "UplinkClient",
    "VERSION",
    "advise",
    "airtime_looks",
    "audit",
    "check",
    "compare",
    "explain",
    "figure",
    "figures",
    "grid",
    "load",
    "looks",
    "make_order",
    "mean_and_ci95",
    "metrics",
    "report",
    "rohc_compare",
    "rohc_compress",
    "rohc_decompress",
    "rohc_stats",
    "run",
    "scenarios",
    "schemes",
    "theory",
    "why",
]
VERSION: str
DEFAULT_SCENARIO: str

class TacitError(Exception): ...

class InputError(TacitError):
    place: str
    what: str
    allowed: str | None

@final
class Table:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def __len__(self) -> int: ...
    @property
    def columns(self) -> list[str]: ...
    def column(self, name: str) -> list[str | int | float | None]: ...

@final
class Answer:
    @property
    def json(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def html(self) -> str: ...
    def table(self, name: str) -> Table: ...

@final
class Arrival:
    @property
    def now(self) -> float: ...
    @property
    def new_bytes(self) -> int: ...
    @property
    def in_order(self) -> bool: ...
    @property
    def waiting_bytes(self) -> int: ...
    @property
    def rtt_min(self) -> float | None: ...
    @property
    def smoothed_rtt(self) -> float | None: ...

@final
class Acknowledged:
    @property
    def now(self) -> float: ...
    @property
    def delivered_bytes(self) -> int: ...
    @property
    def delivered_total_bytes(self) -> int: ...
    @property
    def lost_bytes(self) -> int: ...
    @property
    def prior_in_flight_bytes(self) -> int: ...
    @property
    def in_flight_bytes(self) -> int: ...
    @property
    def rtt(self) -> float | None: ...
    @property
    def smoothed_rtt(self) -> float | None: ...
    @property
    def delivery_rate_bps(self) -> int | None: ...
    @property
    def receiver_rate_bps(self) -> int | None: ...
    @property
    def application_limited(self) -> bool: ...
    @property
    def in_recovery(self) -> bool: ...

@final
class ReadyUser:
    @property
    def client(self) -> int: ...
    @property
    def packets(self) -> int: ...
    @property
    def queued_bytes(self) -> int: ...
    @property
    def oldest(self) -> float: ...
    @property
    def rate_bps(self) -> int: ...

@final
class UplinkClient:
    @property
    def client(self) -> int: ...
    @property
    def reported_bytes(self) -> int: ...
    @property
    def sent_mpdus(self) -> int: ...
    @property
    def silent(self) -> float: ...
    @property
    def mpdus_per_s(self) -> int: ...
    @property
    def rate_bps(self) -> int: ...

_Progress = Callable[[str, int | str, int], object] | None

def scenarios() -> Table: ...
def schemes() -> Table: ...
def metrics() -> Table: ...
def figures() -> Table: ...
def looks(names: Sequence[str]) -> Table: ...
def mean_and_ci95(values: Sequence[float]) -> tuple[float, float | None]: ...
def airtime_looks() -> Table: ...
def load(scenario: str, assignments: Sequence[str]) -> tuple[str, str, str]: ...
def check(scenario: str, assignments: Sequence[str], scheme: str | None, clients: int | None) -> None: ...
def explain(scenario: str, assignments: Sequence[str], scheme: str | None, keys: Sequence[str]) -> Answer: ...
def run(
    scenario: str,
    assignments: Sequence[str],
    *,
    scheme: str | None,
    clients: int | None,
    seed: int,
    quick: bool,
    wire: bool,
    cache: bool,
    acks: Callable[[], object] | None,
    controller: Callable[[int, int], object] | None,
    scheduler: Callable[[], object] | None,
    pcap: str | None,
) -> Answer: ...
def compare(
    scenario: str,
    assignments: Sequence[str],
    *,
    clients: Sequence[int],
    schemes: Sequence[str],
    own: Sequence[object],
    mix: str | None,
    seeds: int | None,
    quick: bool,
    directory: str | None,
    cache: bool,
    progress: _Progress,
) -> Answer: ...
def report(directory: str) -> Answer: ...
def why(
    scenario: str,
    assignments: Sequence[str],
    *,
    clients: Sequence[int],
    schemes: Sequence[str],
    station: bool,
    seeds: int | None,
    quick: bool,
    directory: str | None,
    cache: bool,
    progress: _Progress,
) -> Answer: ...
def advise(
    scenario: str | None,
    assignments: Sequence[str],
    *,
    phy: str | None,
    rate: str | None,
    rtt: str | None,
    clients: int | None,
    uploads: bool,
    capture: str | None,
    seeds: int | None,
    max_seeds: int | None,
    quick: bool,
    cache: bool,
    progress: _Progress,
) -> Answer: ...
def figure(
    id: str, *, quick: bool, directory: str | None, from_directory: str | None, cache: bool, progress: _Progress
) -> Answer: ...
def theory(phy: str, rate: str) -> Answer: ...
def audit(capture: str, phy: str | None, rate: str | None, rtt: str) -> Answer: ...
def rohc_stats(capture: str, codec: str) -> Answer: ...
def rohc_compress(capture: str, out: str, repeat: int, cid: str) -> Answer: ...
def rohc_decompress(rohc: str, out: str, cid: str) -> Answer: ...
def rohc_compare(capture: str, other: str, repeat: int, cid: str) -> Answer: ...
def grid(lists: Sequence[str]) -> list[list[str]]: ...
def make_order(order: str) -> bytes: ...
@final
class Compressor:
    def __new__(cls, *, repeat: int = 2, cid: str = "small") -> Compressor: ...
    def compress(self, packet: bytes) -> bytes: ...
    def feedback(self, bytes: bytes) -> None: ...

@final
class Decompressor:
    def __new__(cls, *, cid: str = "small") -> Decompressor: ...
    def decompress(self, packet: bytes) -> tuple[bytes, bytes | None]: ...

@final
class Sweep:
    def __new__(
        cls,
        scenario: str,
        assignments: Sequence[str],
        places: Sequence[Sequence[str]],
        *,
        schemes: Sequence[str],
        own: Sequence[object],
        clients: Sequence[int],
        seeds: int | None,
        directory: str,
    ) -> Sweep: ...
    @property
    def runs(self) -> int: ...
    @property
    def files(self) -> int: ...
    def missing(self) -> tuple[list[tuple[int, int]], int]: ...
    def order(self, first: int, end: int) -> str: ...
    def keep(self, first: int, end: int, record: bytes) -> None: ...
    def complete(self, cache: bool, progress: _Progress) -> Answer: ...
