-- TCP/HACK in Wireshark and tshark: what rides behind 802.11 ACKs and Block Acks in captures of tacit.
--
--   tshark -X lua_script:contrib/wireshark/tacit.lua -r air.pcapng -Y tacit.hack
--
-- The layout is that of crates/rohc/src/hack/frame.rs and per_ack.rs, and for other feedback of
-- crates/proto/src/hack/codec.rs. What needs the decompressor's context stays octets.

local hack = Proto("tacit_hack", "TCP/HACK: ACKs on a link-layer ACK")

local KINDS = {
    [9] = "long", [10] = "long-init", [11] = "batch", [12] = "batch-init", [13] = "other feedback",
}
for pair = 0, 8 do
    KINDS[pair] = "short"
end

local fields = {
    octets = ProtoField.uint32("tacit.hack.octets", "Octets appended"),
    frames = ProtoField.uint32("tacit.hack.frames", "Frames"),
    acks = ProtoField.uint32("tacit.hack.acks", "ACKs that can be counted without a context"),
    kind = ProtoField.uint8("tacit.hack.kind", "Kind", base.DEC, KINDS, 0x0f),
    length = ProtoField.uint32("tacit.hack.length", "Octets behind the check"),
    cid = ProtoField.uint8("tacit.hack.cid", "CID"),
    msn = ProtoField.uint8("tacit.hack.msn", "MSN of the first ACK"),
    check = ProtoField.uint8("tacit.hack.check", "CRC-8 over the headers", base.HEX),
    native = ProtoField.uint16("tacit.hack.native", "CRC-16 of the native ACK it starts from", base.HEX),
    number = ProtoField.uint24("tacit.hack.number", "Number"),
    body = ProtoField.bytes("tacit.hack.body", "Body"),
    ack = ProtoField.none("tacit.hack.ack", "ACK"),
    form = ProtoField.string("tacit.hack.form", "Form"),
    ack_msn = ProtoField.uint8("tacit.hack.ack.msn", "MSN, 4 bits", base.DEC, nil, 0x78),
    ack_crc = ProtoField.uint8("tacit.hack.ack.crc", "CRC-3", base.HEX, nil, 0x07),
}
local malformed = ProtoExpert.new(
    "tacit.hack.malformed", "No frames of TCP/HACK", expert.group.MALFORMED, expert.severity.WARN)
for _, field in pairs(fields) do
    table.insert(hack.fields, field)
end
hack.experts = { malformed }

-- Octets before what may be appended: a stock ACK, and a compressed Block Ack (802.11-2020 clauses 9.3.1.4, 9.3.1.8).
local STOCK = { [0xd4] = 10, [0x94] = 28 }
local CONTROL_WRAPPER = 0x74
local FCS = 4
local MORE = 15

-- The place and length of what stands behind the standard frame, without the FCS; nil where nothing does.
local function appended(buffer)
    if buffer:len() < 4 then return nil end
    local at = buffer(2, 2):le_uint()
    local mpdu = buffer:len() - at
    if at < 8 or mpdu < 10 + FCS then return nil end
    local kind, stock = buffer(at, 1):uint(), 0
    if kind == CONTROL_WRAPPER and mpdu >= 16 + FCS then
        kind, stock = buffer(at + 10, 1):uint(), 6
    end
    if not STOCK[kind] then return nil end
    stock = stock + STOCK[kind]
    if mpdu <= stock + FCS then return nil end
    return at + stock, mpdu - stock - FCS
end

-- A varint of groups of seven bits, the lowest first: its value, and the place behind it.
local function varint(buffer, at, stop)
    local value, scale = 0, 1
    for _ = 1, 5 do
        if at >= stop then return nil end
        local octet = buffer(at, 1):uint()
        value = value + (octet % 128) * scale
        at, scale = at + 1, scale * 128
        if octet < 128 then return value, at end
    end
    return nil
end

local function has(octet, bit)
    return octet % (2 * bit) >= bit
end

-- The place behind `count` varints.
local function skip_varints(buffer, at, stop, count)
    for _ = 1, count do
        local _, behind = varint(buffer, at, stop)
        if not behind then return nil end
        at = behind
    end
    return at
end

-- The place behind SACK blocks.
local function skip_sack(buffer, at, stop)
    if at >= stop then return nil end
    local head = buffer(at, 1):uint()
    local count, new = math.floor(head / 16), head % 16
    if count > 4 then return nil end
    at = at + 1
    for block = 0, count - 1 do
        if has(new, 2 ^ block) then
            at = skip_varints(buffer, at, stop, 2)
        else
            if at >= stop then return nil end
            local far = buffer(at, 1):uint() % 64 == 63
            at = at + 1
            if far then at = skip_varints(buffer, at, stop, 1) end
        end
        if not at then return nil end
    end
    return at
end

-- The place behind the fields of a long form up to those of its lowest bit; nil where that cannot be told.
local function skip_fields(buffer, at, stop, form)
    if has(form, 0x40) then at = skip_varints(buffer, at, stop, 1) end
    if at and has(form, 0x20) then
        if at >= stop then return nil end
        local rises = buffer(at, 1):uint()
        local far = (math.floor(rises / 16) == 15 and 1 or 0) + (rises % 16 == 15 and 1 or 0)
        at = skip_varints(buffer, at + 1, stop, far)
    end
    if at and has(form, 0x10) then at = skip_varints(buffer, at, stop, 1) end
    if at and has(form, 0x08) then at = at + 2 end
    if at and has(form, 0x04) then at = skip_sack(buffer, at, stop) end
    if at and has(form, 0x02) then at = skip_varints(buffer, at, stop, 1) end
    if at and has(form, 0x01) then return nil end
    if at and at <= stop then return at end
    return nil
end

-- Octet by octet through the ACKs of a frame. Returns how many there are, and whether that is all of them.
local function acks(buffer, at, stop, kind, tree)
    local count, first = 0, true
    if kind <= 8 then
        count, first = 1, false
        tree:add(fields.form, "in the head: the expected step, timestamps "
            .. math.floor(kind / 3) .. " and " .. kind % 3 .. " on")
    end
    while at < stop do
        local form = buffer(at, 1):uint()
        local behind = at + (first and 1 or 2)
        if behind > stop then return count, false end
        local text
        if form < 128 then
            text = string.format("short: %d units, timestamps %d and %d on",
                math.floor(form / 16), math.floor(form / 4) % 4, form % 4)
        else
            behind = skip_fields(buffer, behind, stop, form)
            text = "long"
        end
        local ack = tree:add(fields.ack, buffer(at, (behind or stop) - at))
        ack:append_text(" " .. text)
        ack:add(fields.form, buffer(at, 1), text)
        if not first then
            ack:add(fields.ack_msn, buffer(at + 1, 1))
            ack:add(fields.ack_crc, buffer(at + 1, 1))
        end
        count, first = count + 1, false
        if not behind then return count, false end
        at = behind
    end
    return count, true
end

-- One frame at `at`: the place behind it and its ACKs, or nil.
local function frame(buffer, at, stop, tree)
    if at + 4 > stop then return nil end
    local head = buffer(at, 1):uint()
    local kind, length, body = head % 16, math.floor(head / 16), at + 4
    if not KINDS[kind] then return nil end
    if length == MORE then
        local more
        more, body = varint(buffer, body, stop)
        if not more then return nil end
        length = length + more
    end
    local behind = body + length
    if behind > stop then return nil end
    local item = tree:add(hack, buffer(at, behind - at), "Frame, " .. KINDS[kind])
    item:add(fields.kind, buffer(at, 1))
    item:add(fields.length, buffer(at, 1), length)
    if kind == 13 then
        item:add(fields.number, buffer(at + 1, 3))
        if length > 0 then item:add(fields.body, buffer(body, length)) end
        return behind, 1
    end
    item:add(fields.cid, buffer(at + 1, 1))
    item:add(fields.msn, buffer(at + 2, 1))
    item:add(fields.check, buffer(at + 3, 1))
    if kind == 10 or kind == 12 then
        if length < 2 then return nil end
        item:add(fields.native, buffer(body, 2))
        body = body + 2
    end
    if kind == 11 or kind == 12 then
        if behind > body then item:add(fields.body, buffer(body, behind - body)) end
        return behind, 0
    end
    return behind, (acks(buffer, body, behind, kind, item))
end

function hack.dissector(buffer, packet, tree)
    local at, length = appended(buffer)
    if not at then return end
    local stop = at + length
    local item = tree:add(hack, buffer(at, length))
    item:add(fields.octets, buffer(at, length), length):set_generated()
    local frames, counted = 0, 0
    while at < stop do
        local behind, acks_here = frame(buffer, at, stop, item)
        if not behind then
            item:add_proto_expert_info(malformed)
            break
        end
        frames, counted, at = frames + 1, counted + acks_here, behind
    end
    item:add(fields.frames, frames):set_generated()
    item:add(fields.acks, counted):set_generated()
    item:append_text(string.format(", %d octets, %d frames", length, frames))
    packet.cols.info:append(string.format(" [HACK: %d octets]", length))
end

register_postdissector(hack)

-- ROHC-TCP (RFC 6846, profile 0x0006), on Ethernet by its EtherType: `tacit rohc compress CAPTURE out.pcap` writes such files.
-- What a packet is and what its octets say is shown; values are the bits on the wire, for whole ones take the
-- decompressor's context. Whether a CO packet is of the set for sequential or for random IP-IDs follows from what was last
-- said of its CID.

local rohc = Proto("tacit_rohc", "ROHC-TCP")
rohc.prefs.large = Pref.bool("Large CIDs", false, "CIDs are large, as of `tacit rohc compress --cid large`")

local ETHERTYPE_ROHC = 0x22f1

local rohc_fields = {
    cid = ProtoField.uint16("tacit.rohc.cid", "CID"),
    kind = ProtoField.string("tacit.rohc.type", "Packet type"),
    profile = ProtoField.uint8("tacit.rohc.profile", "Profile", base.HEX),
    crc8 = ProtoField.uint8("tacit.rohc.crc8", "CRC-8", base.HEX),
    crc7 = ProtoField.uint8("tacit.rohc.crc7", "CRC-7", base.HEX),
    crc3 = ProtoField.uint8("tacit.rohc.crc3", "CRC-3", base.HEX),
    v4_source = ProtoField.ipv4("tacit.rohc.src", "Source"),
    v4_destination = ProtoField.ipv4("tacit.rohc.dst", "Destination"),
    v6_source = ProtoField.ipv6("tacit.rohc.src6", "Source"),
    v6_destination = ProtoField.ipv6("tacit.rohc.dst6", "Destination"),
    source_port = ProtoField.uint16("tacit.rohc.srcport", "Source port"),
    destination_port = ProtoField.uint16("tacit.rohc.dstport", "Destination port"),
    behavior = ProtoField.uint8("tacit.rohc.ip_id_behavior", "IP-ID", base.DEC,
        { [0] = "sequential", [1] = "sequential, octets swapped", [2] = "random", [3] = "zero" }),
    value = ProtoField.string("tacit.rohc.field", "Field"),
    base = ProtoField.bytes("tacit.rohc.base", "Base header"),
    rest = ProtoField.bytes("tacit.rohc.rest", "Behind it"),
}
local rohc_malformed = ProtoExpert.new(
    "tacit.rohc.malformed", "No ROHC packet", expert.group.MALFORMED, expert.severity.WARN)
for _, field in pairs(rohc_fields) do
    table.insert(rohc.fields, field)
end
rohc.experts = { rohc_malformed }

-- Discriminator, and the other fields in the order of the wire with their bits (RFC 6846 section 8.2).
local RND = {
    { "rnd_1", "101110", "seq_number 18 msn 4 psh 1 crc3 3" },
    { "rnd_2", "1100", "seq_number_scaled 4 msn 4 psh 1 crc3 3" },
    { "rnd_3", "0", "ack_number 15 msn 4 psh 1 crc3 3" },
    { "rnd_4", "1101", "ack_number_scaled 4 msn 4 psh 1 crc3 3" },
    { "rnd_5", "100", "psh 1 msn 4 crc3 3 seq_number 14 ack_number 15" },
    { "rnd_6", "1010", "crc3 3 psh 1 ack_number 16 msn 4 seq_number_scaled 4" },
    { "rnd_7", "101111", "ack_number 18 window 16 msn 4 psh 1 crc3 3" },
    { "rnd_8", "10110", "rsf 2 list_present 1 crc7 7 msn 4 psh 1 ttl_hopl 3 ecn_used 1 seq_number 16 ack_number 16" },
}
local SEQ = {
    { "seq_1", "1010", "ip_id 4 seq_number 16 msn 4 psh 1 crc3 3" },
    { "seq_2", "11010", "ip_id 7 seq_number_scaled 4 msn 4 psh 1 crc3 3" },
    { "seq_3", "1001", "ip_id 4 ack_number 16 msn 4 psh 1 crc3 3" },
    { "seq_4", "0", "ack_number_scaled 4 ip_id 3 msn 4 psh 1 crc3 3" },
    { "seq_5", "1000", "ip_id 4 ack_number 16 seq_number 16 msn 4 psh 1 crc3 3" },
    { "seq_6", "11011", "seq_number_scaled 4 ip_id 7 ack_number 16 msn 4 psh 1 crc3 3" },
    { "seq_7", "1100", "window 15 ip_id 5 ack_number 16 msn 4 psh 1 crc3 3" },
    { "seq_8", "1011",
        "ip_id 4 list_present 1 crc7 7 msn 4 psh 1 ttl_hopl 3 ecn_used 1 ack_number 15 rsf 2 seq_number 14" },
}
local COMMON = { "co_common", "1111101",
    "ttl_hopl_outer 1 ack_flag 1 psh 1 rsf 2 msn 4 seq_indicator 2 ack_indicator 2 ack_stride_indicator 1 "
    .. "window_indicator 1 ip_id_indicator 1 urg_ptr_present 1 reserved 1 ecn_used 1 dscp_present 1 ttl_hopl_present 1 "
    .. "list_present 1 ip_id_behavior 2 urg 1 df 1 crc7 7" }

-- What each packet left behind, so that packets that are looked at again, and out of order, come out the same.
local before, known = {}, {}

function rohc.init()
    before, known = {}, {}
end

local function starts(octet, bits)
    return math.floor(octet / 2 ^ (8 - #bits)) == tonumber(bits, 2)
end

-- A field of up to 18 bits.
local function bits_at(buffer, from, count)
    local value = 0
    for bit = from, from + count - 1 do
        value = value * 2 + math.floor(buffer(math.floor(bit / 8), 1):uint() / 2 ^ (7 - bit % 8)) % 2
    end
    return value
end

-- A CO packet of this format; returns the fields, or nil where it is cut off.
local function co(format, buffer, tree)
    local total, slots = #format[2], {}
    for name, count in format[3]:gmatch("(%S+) (%d+)") do
        table.insert(slots, { name, total, tonumber(count) })
        total = total + tonumber(count)
    end
    if buffer:len() * 8 < total then return nil end
    local base_item = tree:add(rohc_fields.base, buffer(0, total / 8))
    local values = {}
    for _, slot in ipairs(slots) do
        local name, from, count = slot[1], slot[2], slot[3]
        local value = bits_at(buffer, from, count)
        values[name] = value
        local first, last = math.floor(from / 8), math.floor((from + count - 1) / 8)
        local place = buffer(first, last - first + 1)
        if rohc_fields[name] then
            base_item:add(rohc_fields[name], place, value)
        else
            base_item:add(rohc_fields.value, place, string.format("%s %d", name, value))
        end
    end
    if buffer:len() > total / 8 then
        tree:add(rohc_fields.rest, buffer(total / 8))
    end
    return values
end

-- The static chain of an IR packet, and of the dynamic one the IP-ID behaviour; nil where it is cut off.
local function chains(buffer, tree)
    if buffer:len() < 1 then return nil end
    local head = buffer(0, 1):uint()
    if head < 128 then
        if buffer:len() < 15 then return nil end
        tree:add(rohc_fields.v4_source, buffer(2, 4))
        tree:add(rohc_fields.v4_destination, buffer(6, 4))
        tree:add(rohc_fields.source_port, buffer(10, 2))
        tree:add(rohc_fields.destination_port, buffer(12, 2))
        local behavior = buffer(14, 1):uint() % 4
        tree:add(rohc_fields.behavior, buffer(14, 1), behavior)
        return behavior
    end
    -- A flow label that is not zero takes two octets more.
    local at = has(head, 0x10) and 4 or 2
    if buffer:len() < at + 36 then return nil end
    tree:add(rohc_fields.v6_source, buffer(at, 16))
    tree:add(rohc_fields.v6_destination, buffer(at + 16, 16))
    tree:add(rohc_fields.source_port, buffer(at + 32, 2))
    tree:add(rohc_fields.destination_port, buffer(at + 34, 2))
    -- IPv6 has no IP-ID: its packets are of the set for random ones.
    return 2
end

-- IR, IR-DYN and IR-CR behind their first octet and CID.
local function initialised(kind, buffer, tree)
    if buffer:len() < 2 then return nil end
    tree:add(rohc_fields.profile, buffer(0, 1))
    tree:add(rohc_fields.crc8, buffer(1, 1))
    local body = buffer:len() > 2 and buffer(2):tvb() or nil
    if not body then return kind == "IR-CR" and -1 or nil end
    if kind == "IR" then return chains(body, tree) end
    if kind == "IR-DYN" then return body(0, 1):uint() % 4 end
    return -1
end

local function packet_of(buffer, packet, tree)
    local at, cid = 0, 0
    -- Padding, then a small CID other than 0 (RFC 5795 section 5.2.1).
    while at < buffer:len() and buffer(at, 1):uint() == 0xe0 do at = at + 1 end
    if at >= buffer:len() then return nil end
    local first = buffer(at, 1):uint()
    if not rohc.prefs.large and first > 0xe0 and first <= 0xef then
        cid = first - 0xe0
        tree:add(rohc_fields.cid, buffer(at, 1), cid)
        at = at + 1
        if at >= buffer:len() then return nil end
        first = buffer(at, 1):uint()
    end
    if first >= 0xf0 and first <= 0xf7 then return "feedback" end
    if first >= 0xfe then return "segment" end
    local bytes = buffer(at):bytes()
    if rohc.prefs.large then
        -- It stands behind the first octet (section 5.2.1.2), two octets where the first bit is set.
        local long = at + 1 < buffer:len() and buffer(at + 1, 1):uint() >= 128
        local cid_len = long and 2 or 1
        if at + cid_len >= buffer:len() then return nil end
        cid = buffer(at + 1, cid_len):uint() % (long and 16384 or 128)
        tree:add(rohc_fields.cid, buffer(at + 1, cid_len), cid)
        bytes = buffer(at, 1):bytes()
        if at + 1 + cid_len < buffer:len() then bytes:append(buffer(at + 1 + cid_len):bytes()) end
    end
    local body = bytes:tvb("ROHC packet without CID")
    local kinds = { [0xfd] = "IR", [0xf8] = "IR-DYN", [0xfc] = "IR-CR" }
    local kind, behavior = kinds[first], nil
    if kind then
        if body:len() < 2 then return nil end
        if body(1, 1):uint() == 0 then return "uncompressed IR" end
        behavior = initialised(kind, body(1):tvb(), tree)
        if not behavior then return nil end
    else
        local last = before[packet.number] or known[cid]
        before[packet.number] = last
        local format
        if starts(first, COMMON[2]) then
            format = COMMON
        elseif last then
            for _, candidate in ipairs(last < 2 and SEQ or RND) do
                if starts(first, candidate[2]) then format = candidate end
            end
        else
            return "CO of an unknown context"
        end
        if not format then return nil end
        kind = format[1]
        local values = co(format, body, tree)
        if not values then return nil end
        -- Of IPv6 the field says nothing.
        if format == COMMON and last ~= nil and values.ip_id_behavior ~= nil then behavior = values.ip_id_behavior end
    end
    if behavior and behavior >= 0 and not packet.visited then known[cid] = behavior end
    return kind
end

function rohc.dissector(buffer, packet, tree)
    packet.cols.protocol = "ROHC"
    local item = tree:add(rohc, buffer())
    local kind = packet_of(buffer, packet, item)
    if not kind then
        item:add_proto_expert_info(rohc_malformed)
        packet.cols.info = "malformed"
        return
    end
    item:add(rohc_fields.kind, kind):set_generated()
    item:append_text(", " .. kind)
    packet.cols.info = kind
end

DissectorTable.get("ethertype"):add(ETHERTYPE_ROHC, rohc)
