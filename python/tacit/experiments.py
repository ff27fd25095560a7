"""ACK policies, congestion controllers and schedulers of your own.

They are Python, called for each segment, each ACK and each access: slow, and good for trying an idea before it is written in Rust. The same
packets meet the same draws as in every other run, so that a policy of yours stands beside those that tacit has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Optional, Union

from ._native import Acknowledged, Arrival, ReadyUser, UplinkClient

__all__ = [
    "Acknowledged",
    "AckPolicy",
    "Arrival",
    "Controller",
    "OwnScheme",
    "ReadyUser",
    "Scheduler",
    "Steering",
    "UplinkClient",
]

#: A window in bytes, with a rate in bits per second or None; None leaves both as they are.
Steering = Union[int, "tuple[int, Union[int, None]]", None]


class AckPolicy:
    """When a TCP receiver acknowledges. Each receiver has an object of its own.

    Its methods return a time: ``0`` is now, ``0.025`` in 25 ms unless an acknowledgment leaves before, None no change.

    >>> class EveryFourth(AckPolicy):
    ...     waiting = 0
    ...
    ...     def on_data(self, arrival):
    ...         self.waiting += 1
    ...         if not arrival.in_order or self.waiting >= 4:
    ...             return 0
    ...         return 0.04 if self.waiting == 1 else None
    ...
    ...     def on_ack_sent(self):
    ...         self.waiting = 0
    """

    def on_data(self, arrival: Arrival) -> float | None:
        """A segment with new data arrived."""
        raise NotImplementedError("an AckPolicy says in on_data when to acknowledge")

    def on_timer(self, now: float) -> float | None:
        """The acknowledgment that on_data asked for is due, at ``now`` seconds."""
        return 0

    def on_ack_sent(self) -> None:
        """An acknowledgment of all that was received left, from any cause."""


class Controller:
    """How much a sender may have in the network, and how fast it sends. Each connection has an object of its own.

    ``mss`` is the payload of a full segment in bytes, ``initial_window`` the bytes that may be sent at first.

    Methods return the window in bytes, or ``(window, rate)`` with a rate in bits per second to pace at, or None for no change.
    Without a rate segments are paced by the window. The transport decides about losses and retransmissions.

    >>> class Fixed(Controller):
    ...     def on_ack(self, ack):
    ...         return 40 * self.mss
    """

    def __init__(self, mss: int, initial_window: int) -> None:
        self.mss = mss
        self.initial_window = initial_window

    def on_ack(self, ack: Acknowledged) -> Steering:
        """An ACK came."""
        raise NotImplementedError("a Controller says in on_ack how much may be sent")

    def on_loss(self, in_flight_bytes: int) -> Steering:
        """Losses were found: fast recovery begins, or an ECN echo came."""
        return None

    def on_timeout(self, now: float, in_flight_bytes: int) -> Steering:
        """The retransmission timer expired, at ``now`` seconds."""
        return None


class Scheduler:
    """Which clients share a PPDU of an access point with OFDMA (``wifi.ofdma``), and which a trigger asks.

    An access point has an object for each of its access categories. Methods return positions in the list they are given.

    >>> class LongestQueues(Scheduler):
    ...     def downlink(self, now, ready, most):
    ...         by_queue = sorted(range(len(ready)), key=lambda user: -ready[user].queued_bytes)
    ...         return by_queue[: min(most, 4)]
    """

    def downlink(self, now: float, ready: Sequence[ReadyUser], most: int) -> Sequence[int] | None:
        """The access point won the medium at ``now`` seconds: the users of its PPDU, ``most`` at most.

        ``ready`` has the clients it has data for, in the order of their turns. Resource units are of one size, the largest of which
        there are enough. One user has the whole channel; without any, ``ready[0]`` has.
        """
        raise NotImplementedError("a Scheduler says in downlink which users share a PPDU")

    def uplink(self, now: float, clients: Sequence[UplinkClient], most: int) -> Sequence[int] | None:
        """The clients that a Basic Trigger asks, ``most`` at most; without any, the access point sends none.

        It is called after each exchange, and again when the access point won the medium: its answer then counts.
        """
        return None


@dataclass(frozen=True)
class OwnScheme:
    """Classes of your own as a scheme of :func:`tacit.compare` and :func:`tacit.sweep`, beside those that tacit has.

    A class alone in ``schemes`` is one of its own name. This gives it another name, or combines classes with each other and with a
    ``scheme`` of tacit's, on which they go: None is the scenario as written.

    >>> OwnScheme("hack-every-fourth", ack_policy=EveryFourth, scheme="hack-batch")  # doctest: +SKIP
    """

    name: str
    ack_policy: Optional[Callable[[], AckPolicy]] = None
    controller: Optional[Callable[[int, int], Controller]] = None
    scheduler: Optional[Callable[[], Scheduler]] = None
    scheme: Optional[str] = None


#: What ``schemes`` may have: names, and classes of your own.
SchemeLike = Union[str, "type[AckPolicy]", "type[Controller]", "type[Scheduler]", OwnScheme]


def schemes_of(schemes: Sequence[SchemeLike]) -> tuple[list[str], list[OwnScheme]]:
    """The names of schemes, and those of the user's among them."""
    from ._errors import refusal

    own: list[OwnScheme] = []
    names: list[str] = []
    for scheme in schemes:
        if isinstance(scheme, str):
            names.append(scheme)
            continue
        if isinstance(scheme, type):
            # In the table's style: EveryFourth is every-fourth.
            name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", scheme.__name__).lower()
            kinds = {AckPolicy: "ack_policy", Controller: "controller", Scheduler: "scheduler"}
            kind = next((key for base, key in kinds.items() if issubclass(scheme, base)), None)
            if kind is None:
                allowed = "names, classes of AckPolicy, Controller or Scheduler, and tacit.OwnScheme"
                raise refusal("schemes", f"{scheme.__name__} is no scheme", allowed)
            scheme = OwnScheme(name, **{kind: scheme})  # type: ignore[arg-type]
        if not isinstance(scheme, OwnScheme):
            allowed = "names, classes of AckPolicy, Controller or Scheduler, and tacit.OwnScheme"
            raise refusal("schemes", f"{scheme!r} is no scheme", allowed)
        own.append(scheme)
        names.append(scheme.name)
    return names, own
