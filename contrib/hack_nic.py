#!/usr/bin/env python3
"""A model of the NIC of TCP/HACK, written from docs/references/hack-wire.md alone; no part of tacit is used.

    python3 contrib/hack_nic.py vectors/hack/nic/*.txt

plays the events of the vectors and compares each answer. `Nic.respond` is all that hardware decides within SIFS: two byte
queues, a sequence number and a flag for each peer.
"""
import sys


class Nic:
    """The state for one peer."""

    def __init__(self):
        self.retained, self.fresh = b"", []
        self.last_single, self.withheld, self.limit = None, False, None

    def respond(self, heard, sync, room):
        """`heard` is a sequence number, "ampdu" or "request". Returns proven, frames moved, bytes to append."""
        is_single = isinstance(heard, int)
        moved_on = heard != self.last_single if is_single else heard == "ampdu"
        self.last_single = heard if is_single else None
        proven = moved_on and not sync and not self.withheld
        if proven:
            self.retained = b""
        self.withheld = room is not None and len(self.retained) > room
        if self.withheld:
            return proven, 0, b""
        moved = 0
        while self.fresh:
            length = len(self.retained) + len(self.fresh[0])
            if room is not None and length > room:
                break
            # A frame that is longer than the limit goes alone.
            if self.limit is not None and length > self.limit and self.retained:
                break
            self.retained += self.fresh.pop(0)
            moved += 1
        return proven, moved, self.retained


def answer(nic, words):
    """What an event that is not `begin` leads to: the text of its answer, or None."""
    if words[0] == "limit":
        nic.limit = int(words[1])
    elif words[0] == "add":
        nic.fresh.append(bytes.fromhex(words[1]))
    elif words == ["take", "fresh"]:
        nic.fresh = []
    elif words == ["take", "retained"]:
        nic.retained = b""
    elif words[0] == "heard":
        heard = int(words[2]) if words[1] == "single" else words[1]
        room = int(words[words.index("room") + 1]) if "room" in words else None
        proven, moved, appended = nic.respond(heard, "sync" in words, room)
        return " ".join(["proven" if proven else "unproven", str(moved), appended.hex()]).rstrip()
    else:
        raise SystemExit(f"no event: {' '.join(words)}")
    return None


def main():
    answers = 0
    for path in sys.argv[1:]:
        nic = Nic()
        for number, line in enumerate(open(path, encoding="ascii"), 1):
            event, _, expected = line.split("#")[0].strip().partition(" = ")
            if not event:
                continue
            if event == "begin":
                nic = Nic()
                continue
            said = answer(nic, event.split())
            if said is not None:
                answers += 1
                if said != expected:
                    sys.exit(f"{path}:{number}: {said}")
    print(f"{len(sys.argv) - 1} files, {answers} answers")


if __name__ == "__main__":
    main()
