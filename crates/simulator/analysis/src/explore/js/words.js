// Times, numbers and frames in words.

const UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];

/** A span of time with three significant digits or more. */
function span(ns) {
  const [size, unit] = UNITS.find(([size]) => Math.abs(ns) >= size) ?? UNITS[3];
  const value = ns / size;
  const digits = unit === 'ns' ? 0 : Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 10 ? 2 : 3;
  return `${trimmed(value.toFixed(digits))} ${unit}`;
}
function trimmed(text) { return text.includes('.') ? text.replace(/\.?0+$/, '') : text; }

/** A moment of the run, as exact as `step` needs. */
function moment(ns, step = 1) {
  const digits = Math.min(9, Math.max(0, 9 - Math.floor(Math.log10(Math.max(1, step)) + 1e-9)));
  const [whole, rest] = (ns / 1e9).toFixed(digits).split('.');
  return rest ? `${whole}.${rest.replace(/(\d{3})(?=\d)/g, '$1\u202f')} s` : `${whole} s`;
}

function grouped(number) {
  return Math.round(number).toLocaleString('en').replaceAll(',', '\u202f');
}
function plural(number, word) {
  return `${grouped(number)} ${word}${number === 1 ? '' : 's'}`;
}
function bits(bps) {
  return bps >= 1e9 ? `${trimmed((bps / 1e9).toFixed(2))} Gb/s` : `${trimmed((bps / 1e6).toFixed(2))} Mb/s`;
}

const KIND_WORDS = {
  'data': 'data', 'tcp-ack': 'pure ACKs', 'ack': 'link-layer ACK', 'block-ack': 'Block Ack',
  'block-ack-request': 'Block Ack Request', 'rts': 'RTS', 'cts': 'CTS', 'cf-end': 'CF-End', 'beacon': 'beacon',
  'trigger': 'trigger', 'null': 'buffer status report',
};
const CATEGORY_WORDS = { bk: 'background', be: 'best effort', vi: 'video', vo: 'voice' };

function station(side, number) { return side.stations[number] ?? `station ${number}`; }
function receiver(side, i) { return side.to[i] ? station(side, side.to[i] - 1) : 'all'; }

/** The fate of a frame. */
function fate(side, i) {
  if (side.has(i, 'collided')) return 'collided';
  const [lost, mpdus] = [side.lost[i], side.mpdus[i]];
  if (!lost) return 'received';
  return lost === mpdus ? 'lost' : `${lost} of ${mpdus} MPDUs lost`;
}

/** Whole slots without a frame before one that is an access, else `null`. */
function backoff(side, i) {
  const aifs = side.aifs_ns[side.from[i]]?.[side.category[i]] ?? side.sifs_ns;
  if (side.idle[i] <= side.sifs_ns + 1 || side.kindOf(i) === 'beacon') return null;
  const slots = Math.max(0, Math.round((side.idle[i] - aifs) / side.slot_ns));
  return slots <= side.most_slots ? { aifs: Math.min(aifs, side.idle[i]), slots } : null;
}

/** Every property of a frame: its name and its value. */
function fields(side, i) {
  const all = [
    ['scheme', side.scheme],
    ['kind', KIND_WORDS[side.kindOf(i)]],
    ['from', station(side, side.from[i])],
    ['to', receiver(side, i)],
    ['begins', moment(side.at[i])],
    ['takes', span(side.duration[i])],
    ['fate', fate(side, i)],
  ];
  const add = (name, value) => { if (value) all.push([name, value]); };
  const { bps, mcs, streams, width_mhz } = side.rates[side.rate[i]];
  const how = mcs === null ? '' : `, MCS ${mcs}, ${plural(streams, 'stream')}, ${width_mhz} MHz`;
  add('rate', `${bits(bps)}${how}`);
  if (side.sends(i)) {
    add('MPDUs', `${side.mpdus[i]}, ${grouped(side.bytes[i])} bytes of packets`);
    add('sent again', side.retries[i] ? plural(side.retries[i], 'MPDU') : '');
  }
  if (side.kindOf(i) === 'block-ack' && side.mac_count[i]) {
    add('acknowledges', `${plural(side.acked[i], 'MPDU')} from number ${side.mac[i]} on`);
  } else if (side.mac_count[i]) {
    const last = (side.mac[i] + side.mac_count[i] - 1) % 4096;
    add('MAC numbers', last === side.mac[i] ? `${last}` : `${side.mac[i]} to ${last}`);
  }
  if (side.flow[i]) {
    add('flow', `${side.flow[i]}: ${side.flows[side.flow[i] - 1]?.name ?? ''}${side.has(i, 'mixed') ? ', and others' : ''}`);
  }
  if (side.sequence_count[i]) {
    add('sequence', `${grouped(side.sequence[i])} to ${grouped(side.sequence[i] + side.sequence_count[i])}`);
  }
  add('ACK number', side.has(i, 'acknowledges') ? grouped(side.acknowledges[i]) : '');
  if (side.appended[i]) {
    const again = side.has(i, 'again') ? ', begins as before' : '';
    add('HACK', `${plural(side.appended[i], 'byte')} of compressed ACKs, ${span(side.hack[i])}${again}`);
  }
  const bit = [side.has(i, 'moreData') && 'More Data', side.has(i, 'sync') && 'SYNC'].filter(Boolean);
  add('bits', bit.join(', '));
  add('category', CATEGORY_WORDS[side.categories[side.category[i]]]);
  const waited = backoff(side, i);
  add('idle before', waited ? `${span(side.idle[i])}: AIFS and ${plural(waited.slots, 'slot')}` : span(side.idle[i]));
  add('NAV', side.nav[i] ? `${span(side.nav[i])}, to ${moment(side.end[i] + side.nav[i])}` : 'nothing reserved');
  return all;
}

/** A frame in a sentence, for screen readers. */
function sentence(side, i) {
  const hack = side.appended[i] ? `, with ${plural(side.appended[i], 'byte')} of compressed ACKs` : '';
  const mpdus = side.sends(i) ? `, ${plural(side.mpdus[i], 'MPDU')}` : '';
  return `${side.scheme}, frame ${grouped(i + 1)} of ${grouped(side.count)}: ${station(side, side.from[i])} sends ` +
    `${KIND_WORDS[side.kindOf(i)]} to ${receiver(side, i)}${mpdus}${hack}, at ${moment(side.at[i])}, for ` +
    `${span(side.duration[i])}, ${fate(side, i)}.`;
}
