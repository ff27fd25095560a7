-- TCP/HACK in Wireshark and tshark: the bytes behind 802.11 ACKs and Block Acks in captures of tacit.
--
--   tshark -X lua_script:contrib/wireshark/tacit.lua -r air.pcapng -Y tacit.hack
--
-- The layout is that of crates/core/rohc/src/hack/frame.rs and per_ack.rs, and for other feedback of
-- crates/core/between/src/hack/codec.rs. Fields that need the decompressor's context stay bytes.

local hack = Proto("tacit_hack", "TCP/HACK: ACKs on a link-layer ACK")

local KINDS = {
    [9] = "long", [10] = "long-init", [11] = "batch", [12] = "batch-init", [13] = "other feedback",
}
for pair = 0, 8 do
    KINDS[pair] = "short"
end

local fields = {
    bytes = ProtoField.uint32("tacit.hack.bytes", "Bytes appended"),
    frames = ProtoField.uint32("tacit.hack.frames", "Frames"),
    acks = ProtoField.uint32("tacit.hack.acks", "ACKs that can be counted without a context"),
    kind = ProtoField.uint8("tacit.hack.kind", "Kind", base.DEC, KINDS, 0x0f),
    length = ProtoField.uint32("tacit.hack.length", "Bytes behind the check"),
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

-- Bytes before the appended ones: an ACK, and those of a Block Ack before its BA Control field and behind it (802.11-2020
-- clauses 9.3.1.4, 9.3.1.8).
local ACK, BLOCK_ACK, CONTROL_WRAPPER = 0xd4, 0x94, 0x74
local ACK_LENGTH, BEFORE_CONTROL, BLOCK_ACK_LENGTH = 10, 16, 28
-- Carried Frame Control and HT Control.
local WRAPPER_LENGTH = 6
local FCS = 4
local MORE = 15

local radiotap_length = Field.new("radiotap.length")
local radiotap_fcs = Field.new("radiotap.flags.fcs")
local plain_fcs = Field.new("wlan.fcs")
local encapsulation = Field.new("frame.encap_type")
-- Wireshark's number of 802.11 frames with nothing before them.
local ENCAPSULATION_802_11 = 20

-- Where the 802.11 frame begins, and how many bytes of FCS end it; nil where there is none.
local function mpdu_of_frame()
    local length, fcs = radiotap_length(), radiotap_fcs()
    if length then return length.value, fcs and fcs.value and FCS or 0 end
    local kind = encapsulation()
    if kind and kind.value == ENCAPSULATION_802_11 then return 0, plain_fcs() and FCS or 0 end
    return nil
end

-- Where a standard ACK or Block Ack at `at` ends; nil for other frames, and for Block Acks of other lengths.
local function standard_end(buffer, at)
    if at + ACK_LENGTH > buffer:len() then return nil end
    local kind = buffer(at, 1):uint()
    if kind == CONTROL_WRAPPER then
        if at + ACK_LENGTH + WRAPPER_LENGTH > buffer:len() then return nil end
        kind = buffer(at + ACK_LENGTH, 1):uint()
        at = at + WRAPPER_LENGTH
    end
    if kind == ACK then return at + ACK_LENGTH end
    if kind ~= BLOCK_ACK or at + BEFORE_CONTROL + 4 > buffer:len() then return nil end
    -- BA Type 2 is a compressed bitmap, which a Fragment Number of 0 says is for 64 MPDUs.
    local control, start = buffer(at + BEFORE_CONTROL, 2):le_uint(), buffer(at + BEFORE_CONTROL + 2, 2):le_uint()
    if math.floor(control / 2) % 16 ~= 2 or math.floor(start / 2) % 8 ~= 0 then return nil end
    return at + BLOCK_ACK_LENGTH
end

-- The place and length of the bytes behind the standard frame, without the FCS; nil where there are none.
local function appended(buffer)
    local mpdu, fcs = mpdu_of_frame()
    local at = mpdu and standard_end(buffer, mpdu)
    if not at then return nil end
    local length = math.min(buffer:reported_len() - fcs, buffer:len()) - at
    if length <= 0 then return nil end
    return at, length
end

-- A varint of groups of seven bits, the lowest first: its value, and the place behind it.
local function varint(buffer, at, stop)
    local value, scale = 0, 1
    for _ = 1, 5 do
        if at >= stop then return nil end
        local byte = buffer(at, 1):uint()
        value = value + (byte % 128) * scale
        at, scale = at + 1, scale * 128
        if byte < 128 then return value, at end
    end
    return nil
end

local function has(byte, bit)
    return byte % (2 * bit) >= bit
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

-- The place behind the fields that hardly ever change: a mask, a layout of the option area, and those in the mask.
local function skip_rare(buffer, at, stop)
    if at >= stop then return nil end
    local mask = buffer(at, 1):uint()
    at = at + 1
    if has(mask, 0x80) then
        if at >= stop then return nil end
        -- Two layouts have numbers; others are as many bytes as their first one says.
        local layout = buffer(at, 1):uint()
        at = at + 1 + (layout < 0xfe and layout or 0)
    end
    for _, flag in ipairs({ 0x01, 0x02, 0x04, 0x08 }) do
        if has(mask, flag) then at = at + 1 end
    end
    if has(mask, 0x10) then at = at + 2 end
    return skip_varints(buffer, at, stop, has(mask, 0x40) and 1 or 0)
end

-- The place behind the fields of a long form; nil where they run past the end.
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
    if at and has(form, 0x01) then at = skip_rare(buffer, at, stop) end
    if at and at <= stop then return at end
    return nil
end

-- Byte by byte through the ACKs of a frame. Returns how many there are, and whether that is all of them.
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
    local count, are_whole = acks(buffer, body, behind, kind, item)
    -- None is no frame, either.
    if not are_whole or count == 0 then item:add_proto_expert_info(malformed) end
    return behind, count
end

function hack.dissector(buffer, packet, tree)
    local at, length = appended(buffer)
    if not at then return end
    local stop = at + length
    local item = tree:add(hack, buffer(at, length))
    item:add(fields.bytes, buffer(at, length), length):set_generated()
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
    item:append_text(string.format(", %d bytes, %d frames", length, frames))
    packet.cols.info:append(string.format(" [HACK: %d bytes]", length))
end

register_postdissector(hack)

-- ROHC-TCP (RFC 6846, profile 0x0006) in the framework of RFC 5795, on Ethernet by its EtherType: `tacit rohc compress CAPTURE
-- out.pcapng` writes such files. A packet's type and fields are shown; bits that only the decompressor's context
-- makes values of stay bits. Whether a CO packet is of the set for sequential or for random IP-IDs follows from the last
-- packet of its CID that says so.

local rohc = Proto("tacit_rohc", "ROHC-TCP")
rohc.prefs.large = Pref.bool("Large CIDs", false, "CIDs are large, as of `tacit rohc compress --cid large`")

local ETHERTYPE_ROHC = 0x22f1

local rohc_fields = {
    cid = ProtoField.uint16("tacit.rohc.cid", "CID"),
    base_cid = ProtoField.uint16("tacit.rohc.base_cid", "CID of the base context"),
    kind = ProtoField.string("tacit.rohc.type", "Packet type"),
    profile = ProtoField.uint8("tacit.rohc.profile", "Profile", base.HEX, { [0] = "uncompressed", [6] = "TCP" }),
    crc8 = ProtoField.uint8("tacit.rohc.crc8", "CRC-8", base.HEX),
    crc8_good = ProtoField.bool("tacit.rohc.crc8.good", "CRC-8 is right"),
    crc7 = ProtoField.uint8("tacit.rohc.crc7", "CRC-7", base.HEX),
    crc3 = ProtoField.uint8("tacit.rohc.crc3", "CRC-3", base.HEX),
    padding = ProtoField.uint16("tacit.rohc.padding", "Bytes of padding"),
    final = ProtoField.bool("tacit.rohc.segment.final", "The last of its unit"),
    feedback = ProtoField.string("tacit.rohc.feedback", "Feedback"),
    feedback_cid = ProtoField.uint16("tacit.rohc.feedback.cid", "CID"),
    feedback_msn = ProtoField.uint16("tacit.rohc.feedback.msn", "MSN, low bits"),
    feedback_crc8 = ProtoField.uint8("tacit.rohc.feedback.crc8", "CRC-8", base.HEX),
    feedback_options = ProtoField.bytes("tacit.rohc.feedback.options", "Options"),
    v4_source = ProtoField.ipv4("tacit.rohc.src", "Source"),
    v4_destination = ProtoField.ipv4("tacit.rohc.dst", "Destination"),
    v6_source = ProtoField.ipv6("tacit.rohc.src6", "Source"),
    v6_destination = ProtoField.ipv6("tacit.rohc.dst6", "Destination"),
    source_port = ProtoField.uint16("tacit.rohc.srcport", "Source port"),
    destination_port = ProtoField.uint16("tacit.rohc.dstport", "Destination port"),
    behavior = ProtoField.uint8("tacit.rohc.ip_id_behavior", "IP-ID", base.DEC,
        { [0] = "sequential", [1] = "sequential, bytes swapped", [2] = "random", [3] = "zero" }),
    ip_id = ProtoField.uint16("tacit.rohc.ip_id", "IP-ID", base.HEX),
    ttl = ProtoField.uint8("tacit.rohc.ttl", "TTL or hop limit"),
    flags = ProtoField.uint8("tacit.rohc.flags", "TCP flags", base.HEX),
    msn = ProtoField.uint16("tacit.rohc.msn", "MSN"),
    seq = ProtoField.uint32("tacit.rohc.seq", "Sequence number"),
    ack = ProtoField.uint32("tacit.rohc.ack", "Acknowledgment number"),
    window = ProtoField.uint16("tacit.rohc.window", "Window"),
    checksum = ProtoField.uint16("tacit.rohc.checksum", "TCP checksum", base.HEX),
    stride = ProtoField.uint16("tacit.rohc.ack_stride", "ACK stride"),
    options = ProtoField.string("tacit.rohc.options", "Options in the list"),
    value = ProtoField.string("tacit.rohc.field", "Field"),
    base = ProtoField.bytes("tacit.rohc.base", "Base header"),
    rest = ProtoField.bytes("tacit.rohc.rest", "Behind it"),
}
local rohc_malformed = ProtoExpert.new(
    "tacit.rohc.malformed", "No ROHC packet", expert.group.MALFORMED, expert.severity.WARN)
local rohc_wrong_crc = ProtoExpert.new(
    "tacit.rohc.wrong_crc8", "Wrong CRC-8", expert.group.CHECKSUM, expert.severity.WARN)
local rohc_no_context = ProtoExpert.new(
    "tacit.rohc.no_context", "No packet before it describes its flow", expert.group.UNDECODED, expert.severity.NOTE)
for _, field in pairs(rohc_fields) do
    table.insert(rohc.fields, field)
end
rohc.experts = { rohc_malformed, rohc_wrong_crc, rohc_no_context }

local PROFILE_PLAIN, PROFILE_TCP = 0, 6
local SWAPPED, RANDOM, ZERO = 1, 2, 3

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

-- The flows' own description, by channel and CID: profile, IP version, IP-ID behaviour. And the state before each
-- frame, so that one that is looked at again, and out of order, comes out the same.
local known, before = {}, {}

function rohc.init()
    known, before = {}, {}
end

-- Raised by bytes that are missing, or have an impossible value; nothing else is raised on purpose.
local NO_PACKET = {}

local function refuse()
    error(NO_PACKET, 0)
end

-- Bytes of a buffer, read in order.
local Reader = {}
Reader.__index = Reader

local function reader_of(buffer)
    return setmetatable({ buffer = buffer, at = 0, stop = buffer:len() }, Reader)
end

function Reader:left()
    return self.stop - self.at
end

-- The next bytes, at least one.
function Reader:take(count)
    if count > self:left() then refuse() end
    self.at = self.at + count
    return self.buffer(self.at - count, count)
end

function Reader:byte()
    return self:take(1):uint()
end

-- The bytes read since `from`.
function Reader:since(from)
    return self.buffer(from, self.at - from)
end

local function starts(byte, bits)
    return math.floor(byte / 2 ^ (8 - #bits)) == tonumber(bits, 2)
end

local function format_of(set, first)
    for _, format in ipairs(set) do
        if starts(first, format[2]) then return format end
    end
    return nil
end

-- CRC-8 of RFC 5795 section 5.3.1.1 over bytes `from` to `stop`, the one at `hole` taken for zero.
local function crc8(buffer, from, stop, hole)
    local state, bytes = 0xff, buffer(from, stop - from):bytes()
    for at = from, stop - 1 do
        state = bit.bxor(state, at == hole and 0 or bytes:get_index(at - from))
        for _ = 1, 8 do
            local low = state % 2
            state = (state - low) / 2
            if low == 1 then state = bit.bxor(state, 0xe0) end
        end
    end
    return state
end

-- One or two bytes (RFC 5795 section 5.3.2.3): the CID and where it stands.
local function large_cid(reader)
    local from = reader.at
    local first = reader:byte()
    if first < 0x80 then return first, reader:since(from) end
    if first >= 0xc0 then refuse() end
    return first % 64 * 256 + reader:byte(), reader:since(from)
end

-- The state of this CID of the channel: a copy, and the function that keeps it for later packets.
local function context_of(packet, cid)
    local flow = tostring(packet.dl_src) .. ">" .. tostring(packet.dl_dst) .. "/" .. cid
    local visit = packet.number .. "/" .. cid
    if not packet.visited then before[visit] = known[flow] end
    local context = {}
    for name, value in pairs(before[visit] or {}) do context[name] = value end
    return context, function()
        if not packet.visited then known[flow] = context end
    end
end

local OPTIONS = { [0] = "NOP", "EOL", "MSS", "window scale", "timestamps", "SACK permitted", "SACK" }
-- Of items that always have so many bytes.
local ITEM_LENGTHS = { [0] = 0, 1, 2, 1, 8, 0 }

local function sack_item(reader)
    local blocks = reader:byte()
    if blocks > 4 then refuse() end
    for _ = 1, 2 * blocks do
        local first = reader:byte()
        if first >= 0xe0 and first < 0xff then refuse() end
        reader:take(first < 0x80 and 1 or first < 0xc0 and 2 or first < 0xe0 and 3 or 4)
    end
end

local function item(reader, index)
    if index == 6 then
        sack_item(reader)
    elseif index > 6 then
        -- Kind, length with a flag, and the contents.
        reader:byte()
        local length = reader:byte() % 128
        if length < 2 then refuse() end
        if length > 2 then reader:take(length - 2) end
    elseif ITEM_LENGTHS[index] > 0 then
        reader:take(ITEM_LENGTHS[index])
    end
end

-- A compressed list of options (RFC 6846 section 6.3): which there are, then the items of those that bring one.
local function option_list(reader, tree)
    local from = reader.at
    local head = reader:byte()
    local count, is_wide = head % 16, has(head, 0x10)
    if head >= 0x20 then refuse() end
    local entries = {}
    for entry = 1, count, is_wide and 1 or 2 do
        local byte = reader:byte()
        if is_wide then
            entries[entry] = { byte % 16, has(byte, 0x80) }
        else
            local high, low = math.floor(byte / 16), byte % 16
            entries[entry] = { high % 8, high >= 8 }
            if entry < count then entries[entry + 1] = { low % 8, low >= 8 } end
        end
    end
    local names = {}
    for place, entry in ipairs(entries) do
        names[place] = OPTIONS[entry[1]] or ("item " .. entry[1])
        if entry[2] then item(reader, entry[1]) end
    end
    tree:add(rohc_fields.options, reader:since(from), #names > 0 and table.concat(names, ", ") or "none")
end

local function static_chain(reader, tree, context)
    local head = reader:byte()
    local length, source, destination = 4, rohc_fields.v4_source, rohc_fields.v4_destination
    if head == 0 then
        context.version = 4
    elseif math.floor(head / 32) == 4 then
        -- A flow label that is not zero takes two bytes more.
        if has(head, 0x10) then reader:take(2) end
        context.version = 6
        length, source, destination = 16, rohc_fields.v6_source, rohc_fields.v6_destination
    else
        refuse()
    end
    -- The protocol.
    if reader:byte() ~= 6 then refuse() end
    tree:add(source, reader:take(length))
    tree:add(destination, reader:take(length))
    tree:add(rohc_fields.source_port, reader:take(2))
    tree:add(rohc_fields.destination_port, reader:take(2))
end

local function dynamic_chain(reader, tree, context)
    if context.version == 4 then
        local byte = reader:take(1)
        if byte:uint() > 7 then refuse() end
        context.behavior = byte:uint() % 4
        tree:add(rohc_fields.behavior, byte, context.behavior)
    else
        -- IPv6 has no IP-ID: its packets are of the set for random ones.
        context.behavior = RANDOM
    end
    -- DSCP and ECN.
    reader:take(1)
    tree:add(rohc_fields.ttl, reader:take(1))
    if context.version == 4 and context.behavior ~= ZERO then tree:add(rohc_fields.ip_id, reader:take(2)) end
    local present = reader:byte()
    tree:add(rohc_fields.flags, reader:take(1))
    tree:add(rohc_fields.msn, reader:take(2))
    tree:add(rohc_fields.seq, reader:take(4))
    if not has(present, 0x20) then tree:add(rohc_fields.ack, reader:take(4)) end
    tree:add(rohc_fields.window, reader:take(2))
    tree:add(rohc_fields.checksum, reader:take(2))
    -- The urgent pointer.
    if not has(present, 0x10) then reader:take(2) end
    if has(present, 0x40) then tree:add(rohc_fields.stride, reader:take(2)) end
    option_list(reader, tree)
end

-- The replicate chain of an IR-CR (RFC 4164; RFC 6846 section 8.2).
local function replicate_chain(reader, tree, context)
    if context.version == 4 then
        local byte = reader:take(1)
        if byte:uint() > 15 then refuse() end
        context.behavior = math.floor(byte:uint() / 4)
        tree:add(rohc_fields.behavior, byte, context.behavior)
        reader:take(1)
        if context.behavior ~= ZERO then tree:add(rohc_fields.ip_id, reader:take(2)) end
        if has(byte:uint(), 2) then tree:add(rohc_fields.ttl, reader:take(1)) end
    else
        context.behavior = RANDOM
        reader:take(1)
        local label = reader:byte()
        if label > 0x1f then refuse() end
        if label >= 0x10 then reader:take(2) end
    end
    local first, second = reader:byte(), reader:byte()
    if first >= 0x80 then refuse() end
    tree:add(rohc_fields.msn, reader:take(2))
    tree:add(rohc_fields.seq, reader:take(4))
    for _, port in ipairs({ { rohc_fields.source_port, math.floor(first / 8) % 4 },
        { rohc_fields.destination_port, math.floor(first / 2) % 4 } }) do
        -- Not there, low bits beside those of the base context, or whole.
        if port[2] == 1 then reader:take(1) end
        if port[2] == 2 then tree:add(port[1], reader:take(2)) end
        if port[2] == 3 then refuse() end
    end
    if has(first, 0x40) then tree:add(rohc_fields.window, reader:take(2)) end
    if has(second, 0x40) then reader:take(2) end
    if has(second, 0x80) then tree:add(rohc_fields.ack, reader:take(4)) end
    if has(second, 0x01) then reader:take(1) end
    tree:add(rohc_fields.checksum, reader:take(2))
    if has(first, 0x01) then tree:add(rohc_fields.stride, reader:take(2)) end
    if has(first, 0x20) then option_list(reader, tree) end
end

-- IR, IR-DYN and IR-CR behind their first byte and CID, in a packet that begins at `from`: its name, and whether it may be
-- believed.
local function initialised(reader, tree, first, from, packet, context)
    local profile, crc = reader:take(1), reader:take(1)
    local crc_at = reader.at - 1
    tree:add(rohc_fields.profile, profile)
    tree:add(rohc_fields.crc8, crc)
    local function is_right(stop)
        local good = crc8(reader.buffer, from, stop, crc_at) == crc:uint()
        tree:add(rohc_fields.crc8_good, good):set_generated()
        if not good then tree:add_proto_expert_info(rohc_wrong_crc) end
        return good
    end
    if profile:uint() == PROFILE_PLAIN and first ~= 0xf8 then
        context.profile = PROFILE_PLAIN
        return "uncompressed IR", is_right(crc_at)
    end
    local kind = ({ [0xfd] = "IR", [0xf8] = "IR-DYN", [0xfc] = "IR-CR" })[first]
    if profile:uint() ~= PROFILE_TCP then return kind, false end
    context.profile = PROFILE_TCP
    if kind == "IR" then static_chain(reader, tree, context) end
    if kind == "IR-CR" then
        local byte = reader:take(1)
        tree:add(rohc_fields.crc7, byte, byte:uint() % 128)
        if has(byte:uint(), 0x80) then
            local cid, place
            if rohc.prefs.large then
                cid, place = large_cid(reader)
            else
                place = reader:take(1)
                cid = place:uint()
            end
            tree:add(rohc_fields.base_cid, place, cid)
            context.version = context_of(packet, cid).version
        end
    end
    if not context.version then
        tree:add_proto_expert_info(rohc_no_context)
        return kind, false
    end
    if kind == "IR-CR" then replicate_chain(reader, tree, context) else dynamic_chain(reader, tree, context) end
    return kind, is_right(reader.at)
end

-- The base header of a CO packet, the first byte of which stands at `first_at` and the others before a large CID: its fields.
local function base_header(reader, tree, format, first_at)
    local total, slots = #format[2], {}
    for name, count in format[3]:gmatch("(%S+) (%d+)") do
        table.insert(slots, { name, total, tonumber(count) })
        total = total + tonumber(count)
    end
    local base_item = tree:add(rohc_fields.base, reader.buffer(first_at, 1))
    local places = { [0] = first_at }
    for byte = 1, total / 8 - 1 do
        places[byte] = reader.at
        reader:take(1)
    end
    base_item:set_len(reader.at - first_at)
    local values = {}
    for _, slot in ipairs(slots) do
        local name, from, count = slot[1], slot[2], slot[3]
        local value = 0
        for bit_at = from, from + count - 1 do
            local byte = reader.buffer(places[math.floor(bit_at / 8)], 1):uint()
            value = value * 2 + math.floor(byte / 2 ^ (7 - bit_at % 8)) % 2
        end
        values[name] = value
        local first, last = places[math.floor(from / 8)], places[math.floor((from + count - 1) / 8)]
        local place = reader.buffer(first, last - first + 1)
        if name == "crc3" or name == "crc7" then
            base_item:add(rohc_fields[name], place, value)
        else
            base_item:add(rohc_fields.value, place, string.format("%s %d", name, value))
        end
    end
    return values
end

-- The optional fields of co_common that are sent whole, up to the list.
local function common_tail(reader, tree, values)
    local lengths = { [0] = 0, 1, 2, 4 }
    for _, name in ipairs({ "seq", "ack" }) do
        local length = lengths[values[name .. "_indicator"]]
        local place = length > 0 and reader:take(length)
        if length == 4 then
            tree:add(rohc_fields[name], place)
        elseif place then
            tree:add(rohc_fields.value, place, string.format("%s_number %d", name, place:uint()))
        end
    end
    if values.ack_stride_indicator == 1 then tree:add(rohc_fields.stride, reader:take(2)) end
    if values.window_indicator == 1 then tree:add(rohc_fields.window, reader:take(2)) end
    if values.ip_id_behavior <= SWAPPED then
        local place = reader:take(values.ip_id_indicator + 1)
        if values.ip_id_indicator == 1 then
            tree:add(rohc_fields.ip_id, place)
        else
            tree:add(rohc_fields.value, place, string.format("ip_id %d", place:uint()))
        end
    end
    if values.urg_ptr_present == 1 then reader:take(2) end
    if values.dscp_present == 1 then reader:take(1) end
    if values.ttl_hopl_present == 1 then tree:add(rohc_fields.ttl, reader:take(1)) end
    if values.list_present == 1 then option_list(reader, tree) end
end

-- A feedback element (RFC 5795 section 5.2.4.1, RFC 6846 section 8.3).
local function feedback(reader, tree)
    local from = reader.at
    local size = reader:byte() % 8
    if size == 0 then size = reader:byte() end
    if size == 0 then refuse() end
    reader:take(size)
    local element = setmetatable({ buffer = reader.buffer, at = reader.at - size, stop = reader.at }, Reader)
    local feedback_item = tree:add(rohc_fields.feedback, reader:since(from), "")
    local cid, place = 0, nil
    if rohc.prefs.large then
        cid, place = large_cid(element)
    elseif size > 1 and math.floor(reader.buffer(element.at, 1):uint() / 16) == 0xe then
        place = element:take(1)
        cid = place:uint() % 16
    end
    if place then feedback_item:add(rohc_fields.feedback_cid, place, cid) end
    local kind = "ACK"
    if element:left() == 1 then
        feedback_item:add(rohc_fields.feedback_msn, element:take(1))
    else
        local head = element:take(2)
        kind = ({ [0] = "ACK", "NACK", "STATIC-NACK", "reserved" })[math.floor(head:uint() / 16384)]
        feedback_item:add(rohc_fields.feedback_msn, head, head:uint() % 16384)
        feedback_item:add(rohc_fields.feedback_crc8, element:take(1))
        if element:left() > 0 then feedback_item:add(rohc_fields.feedback_options, element:take(element:left())) end
    end
    feedback_item:set_text("Feedback: " .. kind .. ", CID " .. cid)
end

-- A CO packet, or a packet of profile 0x0000 as it is: its name.
local function without_init(reader, tree, first, first_at, context, keep)
    if context.profile == PROFILE_PLAIN then return "uncompressed" end
    local random, sequential = format_of(RND, first), format_of(SEQ, first)
    local format = starts(first, COMMON[2]) and COMMON
    if not format and context.behavior then format = context.behavior <= SWAPPED and sequential or random end
    if not format then
        if context.behavior or not random then refuse() end
        tree:add_proto_expert_info(rohc_no_context)
        return random[1] .. " or " .. sequential[1]
    end
    local values = base_header(reader, tree, format, first_at)
    if format == COMMON then
        common_tail(reader, tree, values)
        -- Of IPv6 the field says nothing.
        if context.version == 4 then context.behavior = values.ip_id_behavior end
        keep()
    elseif values.list_present == 1 then
        option_list(reader, tree)
    end
    return format[1]
end

-- The names of the parts of the frame, the packet's last.
local function packet_of(reader, packet, tree)
    local alone = "padding"
    while reader:left() > 0 do
        local next_byte = reader.buffer(reader.at, 1):uint()
        if next_byte == 0xe0 then
            local from = reader.at
            while reader:left() > 0 and reader.buffer(reader.at, 1):uint() == 0xe0 do reader:take(1) end
            tree:add(rohc_fields.padding, reader:since(from), reader.at - from)
        elseif next_byte >= 0xf0 and next_byte <= 0xf7 then
            feedback(reader, tree)
            alone = "feedback"
        else
            break
        end
    end
    if reader:left() == 0 then return alone end
    local from, cid, place = reader.at, 0, nil
    local first = reader:byte()
    if first >= 0xfe then
        tree:add(rohc_fields.final, reader:since(from), first == 0xff)
        if reader:left() > 0 then tree:add(rohc_fields.rest, reader:take(reader:left())) end
        return "segment"
    end
    if not rohc.prefs.large and math.floor(first / 16) == 0xe then
        cid, place = first % 16, reader:since(from)
        first = reader:byte()
    end
    local first_at = reader.at - 1
    if rohc.prefs.large then cid, place = large_cid(reader) end
    if place then
        tree:add(rohc_fields.cid, place, cid)
    else
        tree:add(rohc_fields.cid, cid):set_generated()
    end
    local context, keep = context_of(packet, cid)
    local kind
    if first == 0xfd or first == 0xfc or first == 0xf8 then
        local is_good
        kind, is_good = initialised(reader, tree, first, from, packet, context)
        if is_good then keep() end
    else
        kind = without_init(reader, tree, first, first_at, context, keep)
    end
    if reader:left() > 0 then tree:add(rohc_fields.rest, reader:take(reader:left())) end
    return kind
end

function rohc.dissector(buffer, packet, tree)
    packet.cols.protocol = "ROHC"
    local root = tree:add(rohc, buffer())
    local is_good, kind = pcall(packet_of, reader_of(buffer), packet, root)
    if not is_good then
        if kind ~= NO_PACKET then error(kind, 0) end
        root:add_proto_expert_info(rohc_malformed)
        packet.cols.info = "malformed"
        return
    end
    root:add(rohc_fields.kind, kind):set_generated()
    root:append_text(", " .. kind)
    packet.cols.info = kind
end

DissectorTable.get("ethertype"):add(ETHERTYPE_ROHC, rohc)
