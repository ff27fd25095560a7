#!/usr/bin/env python3
"""A receiving end of TCP/HACK, written from docs/references/hack-wire.md alone; no part of tacit is used.

    python3 contrib/hack_decode.py vectors/hack/*.txt

decodes the frames of the vectors and compares ACKs and counts. Frames of kind 13 are the driver's, and unknown here.
"""
import hashlib
import math
import sys

NEXT, SWAPPED, SAME = range(3)
U32 = 1 << 32
OUTCOMES = "delivered duplicate malformed no-context gap stale check".split()


class Malformed(Exception):
    pass


def need(condition):
    if not condition:
        raise Malformed


def crc(data, polynomial, state):
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (polynomial if state & 1 else 0)
    return state


def inet(data):
    total = sum(int.from_bytes(data[i : i + 2].ljust(2, b"\0"), "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def fields(packet):
    """The fields of a pure ACK that may ride; None for another packet."""
    v6 = packet[:1] and packet[0] >> 4 == 6
    ip = 40 if v6 else 20
    if len(packet) < ip + 20:
        return None
    if v6:
        fine = packet[6] == 6 and int.from_bytes(packet[4:6], "big") == len(packet) - ip
        src, dst, tos = packet[8:24], packet[24:40], int.from_bytes(packet[:2], "big") >> 4 & 255
        here = dict(ttl=packet[7], label=int.from_bytes(packet[:4], "big") & 0xFFFFF, id=0, df=0)
    else:
        fine = packet[0] == 0x45 and packet[9] == 6 and int.from_bytes(packet[2:4], "big") == len(packet)
        fine = fine and not packet[6] & 0xBF and not packet[7] and not inet(packet[:20])
        fine = fine and packet[10:12] != b"\xff\xff"
        src, dst, tos = packet[12:16], packet[16:20], packet[1]
        here = dict(ttl=packet[8], label=0, id=int.from_bytes(packet[4:6], "big"), df=packet[6] >> 6)
    tcp = packet[ip:]
    pseudo = src + dst + bytes([0, 6]) + len(tcp).to_bytes(2, "big")
    fine = fine and not inet(pseudo + tcp) and tcp[16:18] != b"\xff\xff"
    if not fine or (tcp[12] >> 4) * 4 != len(tcp) or tcp[13] & 0xB7 != 0x10:
        return None
    word = lambda at, size: int.from_bytes(tcp[at : at + size], "big")
    here.update(v6=v6, src=src, dst=dst, ports=tcp[:4], tos=tos, seq=word(4, 4), ack=word(8, 4), flags=tcp[13])
    here.update(reserved=tcp[12] & 15, window=word(14, 2), urgent=word(18, 2), options=tcp[20:])
    return here


def packet_of(h):
    size = 20 + len(h["options"])
    tcp = h["ports"] + h["seq"].to_bytes(4, "big") + h["ack"].to_bytes(4, "big")
    tcp += bytes([size // 4 << 4 | h["reserved"], h["flags"]]) + h["window"].to_bytes(2, "big")
    rest = h["urgent"].to_bytes(2, "big") + h["options"]
    pseudo = h["src"] + h["dst"] + bytes([0, 6]) + size.to_bytes(2, "big")
    tcp += inet(pseudo + tcp + b"\0\0" + rest).to_bytes(2, "big") + rest
    if h["v6"]:
        start = (6 << 28 | h["tos"] << 20 | h["label"]).to_bytes(4, "big")
        return start + size.to_bytes(2, "big") + bytes([6, h["ttl"]]) + h["src"] + h["dst"] + tcp
    ip = bytes([0x45, h["tos"]]) + (20 + size).to_bytes(2, "big") + h["id"].to_bytes(2, "big")
    ip += bytes([h["df"] << 6, 0, h["ttl"], 6])
    return ip + inet(ip + h["src"] + h["dst"]).to_bytes(2, "big") + h["src"] + h["dst"] + tcp


def plain_area(area):
    """Timestamps (or None) and SACK blocks of a plain option area; None for a raw one."""
    stamps, blocks, rest = None, [], area
    words = lambda data: [int.from_bytes(data[i : i + 4], "big") for i in range(0, len(data), 4)]
    if rest[:4] == b"\1\1\x08\x0a" and len(rest) >= 12:
        stamps, rest = words(rest[4:12]), rest[12:]
    if rest:
        count = (len(rest) - 4) // 8
        if not 1 <= count <= 4 or rest != bytes([1, 1, 5, 2 + 8 * count]) + rest[4 : 4 + 8 * count]:
            return None
        edges = words(rest[4:])
        blocks = list(zip(edges[::2], edges[1::2]))
    return stamps, blocks


class Context:
    def __init__(self, native):
        self.h, self.stamps = dict(native), [0, 0]
        self.unit, self.odd = 1428 if native["v6"] else 1448, 0
        self.step = self.latest = 2
        self.window_step, self.rule = 0, NEXT if native["id"] else SAME
        self.take_area()

    def copy(self):
        other = Context.__new__(Context)
        other.__dict__.update(self.__dict__, h=dict(self.h), stamps=list(self.stamps))
        return other

    def take_area(self):
        plain = plain_area(self.h["options"])
        self.raw, self.has_stamps, self.blocks = plain is None, bool(plain and plain[0]), plain[1] if plain else []
        self.stamps = plain[0] if self.has_stamps else self.stamps

    def bytes_of(self, figure):
        size = (figure >> 1) * (1 if figure & 1 else self.unit)
        need(figure >> 1 < U32 and size < U32)
        return size

    @staticmethod
    def expected_id(rule, ident):
        if rule == SWAPPED:
            swapped = ((ident >> 8 | ident << 8) + 1) & 0xFFFF
            return (swapped >> 8 | swapped << 8) & 0xFFFF
        return (ident + (rule == NEXT)) & 0xFFFF

    def area(self, d, ack):
        layout, blocks, rises = d.get("layout"), d.get("sack"), d.get("rises", (0, 0))
        if isinstance(layout, bytes):
            return layout
        if layout is None and blocks is None and (self.raw or rises == (0, 0) and not self.blocks):
            return self.h["options"]
        need(not (self.raw and layout is None))
        out = b""
        if self.has_stamps if layout is None else layout:
            out = b"\1\1\x08\x0a" + b"".join(((s + r) % U32).to_bytes(4, "big") for s, r in zip(self.stamps, rises))
        expected = [b for b in self.blocks if 0 < (b[1] - ack) % U32 < 1 << 31]
        if blocks is None:
            real = expected
        else:
            real = []
            for is_new, a, b in blocks:
                need(is_new or a < len(expected))
                start = ack + a if is_new else expected[a][0]
                real.append((start % U32, (start + b if is_new else expected[a][1] + b) % U32))
        if real:
            out += bytes([1, 1, 5, 2 + 8 * len(real)])
            out += b"".join(edge.to_bytes(4, "big") for block in real for edge in block)
        need(len(out) <= 40)
        return out

    def apply(self, d):
        """The packet that differs by `d`; the context advances to it."""
        h, step = self.h, d.get("step", 2 * self.step)
        moved = self.bytes_of(step)
        ack = (h["ack"] + moved) % U32
        area = self.area(d, ack)
        last_id = h["id"]
        h.update(ack=ack, window=(h["window"] + d.get("window", 0)) % 65536, seq=(h["seq"] + d.get("seq", 0)) % U32)
        if not h["v6"]:
            h["id"] = (self.expected_id(self.rule, last_id) + d.get("id", 0)) & 0xFFFF
            h["df"] ^= d.get("df", 0)
        h.update(d.get("others", {}))
        need(h["flags"] & 0xB7 == 0x10)
        if step & 1:
            unit = next((u for u in (math.gcd(self.unit, moved), math.gcd(self.odd, moved)) if u >= 128), U32)
            self.unit = unit if unit <= 65535 else self.unit
            self.odd = moved
        else:
            self.step = step >> 1 if step >> 1 == self.latest else self.step
            self.latest = step >> 1
        self.window_step = d.get("window", 0) or self.window_step
        if d.get("id", 0):
            fits = [rule for rule in (NEXT, SWAPPED, SAME) if self.expected_id(rule, last_id) == h["id"]]
            self.rule = fits[0] if fits else self.rule
        if area != h["options"]:
            h["options"] = area
            self.take_area()
        return packet_of(h)


OTHERS = (("tos", 1), ("ttl", 1), ("flags", 1), ("reserved", 1), ("urgent", 2))


def zigzag(figure):
    need(figure < 65536)
    return (figure >> 1 ^ -(figure & 1)) & 0xFFFF


def below(number):
    need(number < U32)
    return number


def others(d, mask, byte, label):
    """The rarely changing fields in `mask`; `byte` reads that many bytes, `label` a flow label."""
    found = {name: byte(size) for bit, (name, size) in enumerate(OTHERS) if mask >> bit & 1}
    if "reserved" in found:
        found["reserved"] &= 15
    d["df"] = mask >> 5 & 1
    if mask & 0x40:
        found["label"] = label() & 0xFFFFF
    d["others"] = found


class Reader:
    def __init__(self, data):
        self.rest = data

    def byte(self, count=1):
        need(len(self.rest) >= count)
        taken, self.rest = self.rest[:count], self.rest[count:]
        return int.from_bytes(taken, "big")

    def varint(self):
        value = 0
        for group in range(6):
            byte = self.byte()
            value |= (byte & 127) << 7 * group
            if byte < 128:
                return value
        raise Malformed

    def ack(self, context, has_mark):
        form, mark = self.byte(), self.byte() if has_mark else None
        if form < 128:
            return dict(step=form >> 4 << 1, rises=(form >> 2 & 3, form & 3)), mark
        d = {}
        if form & 0x40:
            d["step"] = self.varint()
        if form & 0x20:
            rises = self.byte()
            d["rises"] = tuple(below(self.varint()) if n == 15 else n for n in (rises >> 4, rises & 15))
        if form & 0x10:
            d["window"] = zigzag(self.varint())
        if form & 0x08:
            d["id"] = self.byte(2)
        if form & 0x04:
            head = self.byte()
            need(head >> 4 <= 4)
            d["sack"] = [self.block(context, head >> i & 1) for i in range(head >> 4)]
        if form & 0x02:
            d["seq"] = below(self.varint())
        if form & 0x01:
            mask = self.byte()
            if mask & 0x80:
                size = self.byte()
                need(size >= 0xFE or size <= 40 and size % 4 == 0)
                d["layout"] = size == 0xFF if size >= 0xFE else self.byte(size).to_bytes(size, "big")
            others(d, mask, self.byte, lambda: below(self.varint()))
        return d, mark

    def block(self, context, is_new):
        if is_new:
            return True, context.bytes_of(self.varint()), context.bytes_of(self.varint())
        byte = self.byte()
        return False, byte >> 6, context.bytes_of(self.varint() if byte & 63 == 63 else 2 * (byte & 63))


EVEN, SELDOM, RARE, OFTEN = (0x8000, 0), (0x4000, 1), (0x0800, 3), (0xE000, 2)
RATES = [1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5]
CHANCES = dict(
    last=[SELDOM] * 32, step_expected=[OFTEN] * 8, timestamps=[SELDOM] * 2 + [OFTEN] * 2, window=[RARE] * 4,
    window_again=[EVEN] * 2, other=[RARE, EVEN], others=[EVEN] * 5, blocks=[EVEN] * 8, block_new=[EVEN] * 4,
    block_index=[EVEN] * 4, block_moved=[EVEN] * 4, rare=[EVEN] * 7)  # fmt: skip
NUMBERS = "step0 step1 value0 value1 echo0 echo1 echo2 window_step seq advance offset length".split()


class Model:
    def __init__(self):
        self.chances = {name: list(chances) for name, chances in CHANCES.items()}
        for name in NUMBERS:
            self.chances[name] = [SELDOM] * 35 + [EVEN] * 32
        self.was = dict(step_expected=1, timestamps=0, window=0, other=0)

    def copy(self):
        other = Model()
        other.chances = {name: list(chances) for name, chances in self.chances.items()}
        other.was = dict(self.was)
        return other


class RangeReader:
    def __init__(self, data, model, context):
        self.rest, self.code, self.range = iter(data), 0, U32 - 1
        self.m, self.context = model, context
        for _ in range(4):
            self.shift()

    def shift(self):
        self.code = (self.code << 8 | next(self.rest, 0)) % U32

    def renormalise(self):
        while self.range < 1 << 24:
            self.shift()
            self.range <<= 8

    def bit(self, name, at):
        p, age = self.m.chances[name][at]
        bound = self.range * min(max(p, 48), 65536 - 48) >> 16
        bit = self.code < bound
        if bit:
            self.range = bound
        else:
            self.code, self.range = self.code - bound, self.range - bound
        p = p + (65520 - p >> RATES[age]) if bit else p - (p >> RATES[age])
        self.m.chances[name][at] = p & ~15, min(age + 1, 15)
        self.renormalise()
        return int(bit)

    def plain(self, bits):
        value = 0
        for _ in range(bits):
            self.range >>= 1
            bit = self.code >= self.range
            self.code -= self.range if bit else 0
            value = value << 1 | bit
            self.renormalise()
        return value

    def number(self, name):
        length, n = 1, 1
        while length < 35 and self.bit(name, length):
            length += 1
        if length <= 5:
            for _ in range(length - 1):
                n = 2 * n + self.bit(name, 35 + (n | 1 << length - 1))
            return n - 1
        high = max(length - 1 - 32, 0)
        n = n << high | self.plain(high)
        return (n << length - 1 - high | self.plain(length - 1 - high)) - 1

    def figure(self, name):
        return self.context.bytes_of(self.number(name))

    def ack(self, index):
        """The next ACK, and whether it is the last of its frame."""
        m, d, first = self.m.was, {}, int(index == 0)
        last = self.bit("last", min(index, 31))
        other = self.bit("other", m["other"])
        m["step_expected"] = self.bit("step_expected", 4 * first + 2 * last + m["step_expected"])
        if not m["step_expected"]:
            d["step"] = self.number("step1" if last and not first else "step0")
        m["timestamps"] = self.bit("timestamps", 2 * first + m["timestamps"])
        if m["timestamps"]:
            value = below(self.number(f"value{first}"))
            d["rises"] = value, below(self.number(f"echo{min(value, 2)}"))
        moved = self.bit("window", m["window"] + 2 * m["step_expected"])
        if moved:
            again = self.bit("window_again", m["window"])
            d["window"] = self.context.window_step if again else zigzag(self.number("window_step"))
        m["window"] = moved
        if other:
            self.others(d)
        m["other"] = other
        return d, last

    def others(self, d):
        if self.bit("others", 0):
            d["id"] = self.plain(16)
        if self.bit("others", 1):
            d["seq"] = below(self.number("seq"))
        if self.bit("others", 2):
            count = 1
            for _ in range(3):
                count = 2 * count + self.bit("blocks", count)
            need(count & 7 <= 4)
            d["sack"] = [self.block(b) for b in range(count & 7)]
        if self.bit("others", 3):
            if self.plain(1):
                size = 4 * self.plain(4)
                need(size <= 40)
                d["layout"] = bytes(self.plain(8) for _ in range(size))
            else:
                d["layout"] = bool(self.plain(1))
        if self.bit("others", 4):
            mask = sum(self.bit("rare", bit) << bit for bit in range(7))
            others(d, mask, lambda size: self.plain(8 * size), lambda: self.plain(20))

    def block(self, b):
        if self.bit("block_new", b):
            return True, self.figure("offset"), self.figure("length")
        index = b if self.bit("block_index", b) else self.plain(2)
        return False, index, self.figure("advance") if self.bit("block_moved", b) else 0


class Flow:
    def __init__(self, cid):
        self.cid, self.candidates, self.incarnation, self.used = cid, [], None, 0


class Incarnation:
    def __init__(self, check, native, msn):
        self.started, self.first, self.next, self.seen = check, msn, msn, msn
        self.context, self.model = Context(native), Model()

    def age(self, msn):
        low = self.seen - 128
        msn = low + (msn - low) % 256
        self.seen = max(self.seen, msn)
        return msn - self.next

    def decode(self, kind, msn, check, body):
        """The packets of a frame; None if a check fails. Without a result nothing has changed."""
        context, model, packets, marks = self.context.copy(), self.model.copy(), [], []
        if kind >= 11:
            reader, last = RangeReader(body, model, context), 0
            while not last:
                need(len(packets) < 64)
                d, last = reader.ack(len(packets))
                packets.append(context.apply(d))
        else:
            reader = Reader(body)
            if kind <= 8:
                packets.append(context.apply(dict(rises=(kind // 3, kind % 3))))
            while reader.rest or not packets:
                need(len(packets) < 64)
                d, mark = reader.ack(context, bool(packets))
                marks.append((len(packets), mark))
                packets.append(context.apply(d))
        for index, mark in marks:
            if mark is not None and mark != (msn + index & 15) << 3 | crc(packets[index], 6, 7):
                return None
        if crc(b"".join(packets), 0xE0, 0xFF) != check:
            return None
        self.context, self.model = context, model
        self.next += len(packets)
        self.seen = self.next
        return packets


class ReceivingEnd:
    def __init__(self, contexts=256):
        self.contexts, self.flows, self.clock = contexts, {}, 0

    def native(self, packet):
        h = fields(packet)
        if h is None:
            return
        self.clock += 1
        key = h["src"] + h["dst"] + b"\6" + h["ports"]
        if key not in self.flows:
            if len(self.flows) == self.contexts:
                del self.flows[min(self.flows, key=lambda k: self.flows[k].used)]
            self.flows[key] = Flow(hashlib.md5(key).digest()[-1])
        flow, check = self.flows[key], crc(packet, 0x8408, 0xFFFF) ^ 0xFFFF
        flow.candidates = [(check, h)] + [c for c in flow.candidates if c[0] != check][:3]
        flow.used = self.clock

    def receive(self, data):
        """The ACKs behind a link-layer ACK, and how many frames had each outcome."""
        packets, counts = [], dict.fromkeys(OUTCOMES, 0)
        while data:
            self.clock += 1
            try:
                reader = Reader(data)
                head, cid, msn, check = (reader.byte() for _ in range(4))
                length = head >> 4
                length += reader.varint() if length == 15 else 0
                need(len(reader.rest) >= length)
            except Malformed:
                counts["malformed"] += 1
                break
            body, data = reader.rest[:length], reader.rest[length:]
            try:
                outcome = self.frame(head & 15, cid, msn, check, body, packets)
            except Malformed:
                outcome = "malformed"
            counts[outcome] += 1
        return packets, counts

    def frame(self, kind, cid, msn, check, body, packets):
        need(kind <= 12)
        named = None
        if kind in (10, 12):
            need(len(body) >= 2)
            named, body = int.from_bytes(body[:2], "big"), body[2:]
        flows = [flow for flow in self.flows.values() if flow.cid == cid]
        flow = next((flow for flow in flows if flow.incarnation), None)
        if named is None:
            if flow is None:
                return "no-context"
            age, found = flow.incarnation.age(msn), flow.incarnation
            if age:
                return "duplicate" if age < 0 else "gap"
        else:
            owner = next((f for f in flows if named in [c[0] for c in f.candidates]), None)
            if owner is None:
                if flow is None:
                    return "stale" if flows else "no-context"
                return "duplicate" if flow.incarnation.age(msn) < 0 else "stale"
            flow, present = owner, owner.incarnation
            if present and (present.started, present.first) == (named, msn):
                return "duplicate"
            at = [c[0] for c in flow.candidates].index(named)
            found = Incarnation(named, flow.candidates[at][1], msn)
        got = found.decode(kind, msn, check, body)
        if got is None:
            return "check"
        if named is not None:
            for other in flows:
                other.incarnation = None
            flow.incarnation, flow.candidates = found, flow.candidates[:at]
        flow.used = self.clock
        packets += got
        return "delivered"


def compare(path):
    """Decodes the vector at `path`; returns the number of its ACKs. Exits at the first difference."""
    end, due, delivered = ReceivingEnd(), [], 0
    for number, line in enumerate(open(path, encoding="ascii"), 1):
        words = line.split("#")[0].split()
        if words[:1] != ["decompressor"]:
            continue
        event, values = words[1], words[2:]
        if event == "ack":
            if not due or due.pop(0) != bytes.fromhex(values[0]):
                sys.exit(f"{path}:{number}: another ACK was decoded")
            delivered += 1
            continue
        if due:
            sys.exit(f"{path}:{number}: {len(due)} more ACKs were decoded")
        if event == "contexts":
            end = ReceivingEnd(int(values[0]))
        elif event == "native":
            end.native(bytes.fromhex(values[0]))
        elif event == "receive":
            due, counts = end.receive(bytes.fromhex(values[0]))
            said = [f"{name}={count}" for name, count in counts.items() if count]
            if said != values[2:]:
                sys.exit(f"{path}:{number}: {' '.join(said)}")
        else:
            sys.exit(f"{path}:{number}: unknown event {event}")
    if due:
        sys.exit(f"{path}: {len(due)} more ACKs were decoded")
    return delivered


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(f"{path}: {compare(path)} ACKs")
