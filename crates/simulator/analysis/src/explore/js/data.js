// The data of the file, as arrays: a column per property, a row per frame or sample. Times are nanoseconds.

const known = JSON.parse(document.getElementById('known').textContent);

/** The bytes of scheme `number`. */
async function inflated(number) {
  const text = atob(document.getElementById(`bytes-${number}`).textContent);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = text.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The columns that `layouts` find in `bytes`: planes of bytes, lowest first, and steps from row to row. */
function columnsOf(layouts, bytes) {
  const columns = {};
  let from = 0;
  for (const { name, rows, width, steps, by } of layouts) {
    const wide = steps || width > 4;
    const values = wide ? new Float64Array(rows) : width > 2 ? new Uint32Array(rows) :
      width > 1 ? new Uint16Array(rows) : new Uint8Array(rows);
    for (let plane = 0, weight = 1; plane < width; plane++, weight *= 256) {
      for (let row = 0; row < rows; row++) values[row] += bytes[from + row] * weight;
      from += rows;
    }
    if (steps) {
      const last = [];
      const keys = by ? columns[by] : null;
      for (let row = 0; row < rows; row++) {
        const told = values[row];
        const key = keys ? keys[row] : 0;
        const value = (last[key] ?? 0) + (told % 2 ? -(told + 1) / 2 : told / 2);
        values[row] = last[key] = value;
      }
    }
    columns[name] = values;
  }
  return columns;
}

/** Uses of airtime: class of a frame, CSS variable, word, and how it is drawn beside its colour. */
const CLASSES = [
  { name: 'data', word: 'data', pattern: null, height: 1 },
  { name: 'tcp_ack', word: 'pure ACKs', pattern: 'slash', height: 0.8 },
  { name: 'retransmission', word: 'sent again', pattern: 'corner', height: 1 },
  { name: 'link_ack', word: 'link-layer ACKs', pattern: null, height: 0.55 },
  { name: 'compressed_ack', word: 'HACK: compressed ACKs', pattern: 'dots', height: 0.55 },
  { name: 'protection', word: 'RTS, CTS, CF-End, triggers', pattern: 'bars', height: 0.4 },
  { name: 'collision', word: 'collided', pattern: 'cross', height: 1 },
  { name: 'beacon', word: 'beacons', pattern: 'lines', height: 0.7 },
];
const [DATA, TCP_ACK, AGAIN, LINK_ACK, HACK, PROTECTION, COLLISION, BEACON] = CLASSES.keys();
const CLASS_OF_KIND = {
  'data': DATA, 'tcp-ack': TCP_ACK, 'ack': LINK_ACK, 'block-ack': LINK_ACK, 'block-ack-request': LINK_ACK,
  'rts': PROTECTION, 'cts': PROTECTION, 'cf-end': PROTECTION, 'trigger': PROTECTION, 'null': LINK_ACK, 'beacon': BEACON,
};

/** Counts of frames, each as a sum over all frames before a row. */
const COUNTS = {
  'frames': () => 1,
  'PPDUs of data': (side, i) => +(side.kindOf(i) === 'data'),
  'PPDUs of pure ACKs': (side, i) => +(side.kindOf(i) === 'tcp-ack'),
  'MPDUs in them': (side, i) => side.mac_count[i] && side.sends(i) ? side.mpdus[i] : 0,
  'MPDUs lost': (side, i) => side.sends(i) ? side.lost[i] : 0,
  'MPDUs sent again': (side, i) => side.retries[i],
  'frames that collided': (side, i) => +side.has(i, 'collided'),
  'ACKs and Block Acks': (side, i) => +(side.kindOf(i) === 'ack' || side.kindOf(i) === 'block-ack'),
  'of them lost': (side, i) => +(side.answers(i) && side.lost[i] > 0),
  'of them with HACK bytes': (side, i) => +(side.appended[i] > 0),
  'HACK bytes': (side, i) => side.appended[i],
};

/** How many stretches of equal length the air is summed up in, for views of very many frames. */
const BINS = 8192;
/** Stations with a lane of their own; all others share the last one. */
const MAX_LANES = 48;

/** A scheme: the properties of its run, and a column per property of its frames. */
class Side {
  constructor(number, about, bytes) {
    Object.assign(this, about, columnsOf(about.columns, bytes));
    this.number = number;
    this.count = this.at.length;
    this.bits = Object.fromEntries(this.flags_names().map((name, bit) => [name, 1 << bit]));
    this.lanes = Math.min(this.stations.length, MAX_LANES);
    this.end = new Float64Array(this.count);
    this.class = new Uint8Array(this.count);
    /** Of each frame the time that compressed ACKs take at its end. */
    this.hack = new Float64Array(this.count);
    this.isData = new Uint8Array(this.count);
    /** From when on a frame has the air to itself or shares it with later ones: each moment is one frame's. */
    this.own = new Float64Array(this.count);
    this.which = new Uint32Array(this.count + 1);
    this.longest = 0;
    for (let i = 0; i < this.count; i++) {
      this.end[i] = this.at[i] + this.duration[i];
      this.class[i] = this.classOf(i);
      this.hack[i] = this.hackTime(i);
      this.isData[i] = +(this.kindOf(i) === 'data' && this.sequence_count[i] > 0);
      this.longest = Math.max(this.longest, this.duration[i]);
      // Of a frame of which nothing arrived the list says nothing.
      this.which[i + 1] = this.which[i] + (this.lost[i] < this.mpdus[i] ? this.lost[i] : 0);
    }
    this.sumUp();
  }

  flags_names() { return known.sides[this.number].flags; }
  has(i, flag) { return (this.flags[i] & this.bits[flag]) !== 0; }
  kindOf(i) { return this.kinds[this.kind[i]]; }
  sends(i) { return this.kindOf(i) === 'data' || this.kindOf(i) === 'tcp-ack'; }
  answers(i) { return this.kindOf(i) === 'ack' || this.kindOf(i) === 'block-ack'; }
  laneOf(i) { return Math.min(this.from[i], this.lanes - 1); }
  classOf(i) {
    if (this.has(i, 'collided')) return COLLISION;
    const own = CLASS_OF_KIND[this.kindOf(i)];
    return own <= TCP_ACK && this.retries[i] === this.mpdus[i] ? AGAIN : own;
  }
  hackTime(i) {
    if (!this.appended[i]) return 0;
    return Math.min(this.duration[i], this.appended[i] * 8e9 / this.rates[this.rate[i]].bps);
  }
  isLost(i, mpdu) {
    if (this.lost[i] === this.mpdus[i]) return true;
    for (let at = this.which[i]; at < this.which[i + 1]; at++) if (this.which_lost[at] === mpdu) return true;
    return false;
  }

  /** Sums over all frames before each row: airtime by class, each moment once, and counts. */
  sumUp() {
    this.spent = CLASSES.map(() => new Float64Array(this.count + 1));
    this.sums = Object.fromEntries(Object.keys(COUNTS).map((name) => [name, new Float64Array(this.count + 1)]));
    let busy = 0;
    for (let i = 0; i < this.count; i++) {
      for (const sums of this.spent) sums[i + 1] = sums[i];
      this.own[i] = Math.min(this.end[i], Math.max(this.at[i], busy));
      const fresh = this.end[i] - this.own[i];
      busy = Math.max(busy, this.end[i]);
      const hack = Math.min(fresh, this.hack[i]);
      this.spent[this.class[i]][i + 1] += fresh - hack;
      this.spent[HACK][i + 1] += hack;
      for (const [name, of] of Object.entries(COUNTS)) {
        const sums = this.sums[name];
        sums[i + 1] = sums[i] + of(this, i);
      }
    }
  }

  /** The first row that begins at `time` or later. */
  firstAt(time) { return lowerBound(this.at, time); }

  /** Rows from and to that may be seen between two times. */
  seen(from, to) {
    let first = this.firstAt(from - this.longest);
    while (first < this.count && this.end[first] < from) first++;
    return [first, this.firstAt(to)];
  }

  /** Time of each class between two times, each moment once. */
  timeIn(from, to) {
    const [first, last] = this.seen(from, to);
    const times = CLASSES.map((_, what) => this.spent[what][last] - this.spent[what][first]);
    // Frames across an end count with the part inside.
    const leave = (i, begin, end) => {
      const split = Math.max(this.own[i], this.end[i] - this.hack[i]);
      times[this.class[i]] -= Math.max(0, Math.min(end, split) - Math.max(begin, this.own[i]));
      times[HACK] -= Math.max(0, Math.min(end, this.end[i]) - Math.max(begin, split));
    };
    for (let i = first; i < last && this.at[i] < from; i++) leave(i, -Infinity, from);
    for (let i = last - 1; i >= first && this.at[i] > to - this.longest; i--) if (this.end[i] > to) leave(i, to, Infinity);
    return times.map((time) => Math.max(0, time));
  }

  /** How many of each of `COUNTS` are on frames of which something is between two times. */
  countIn(name, from, to) {
    const [first, last] = this.seen(from, to);
    let count = this.sums[name][last] - this.sums[name][first];
    for (let i = first; i < last && this.at[i] < from; i++) if (this.end[i] < from) count -= COUNTS[name](this, i);
    return count;
  }

  /** Share of each class in the air of each of `BINS` stretches, for lane after lane. */
  bins() {
    if (this.binned) return this.binned;
    const length = (this.until_ns - this.from_ns) / BINS;
    const shares = new Float32Array(this.lanes * CLASSES.length * BINS);
    const marks = new Uint8Array(this.lanes * BINS);
    const spread = (lane, what, from, to) => {
      const base = (lane * CLASSES.length + what) * BINS;
      for (let bin = Math.floor((from - this.from_ns) / length); bin < BINS; bin++) {
        const start = this.from_ns + bin * length;
        if (start >= to) break;
        shares[base + bin] += (Math.min(to, start + length) - Math.max(from, start)) / length;
      }
    };
    for (let i = 0; i < this.count; i++) {
      const hack = this.hack[i];
      const lane = this.laneOf(i);
      spread(lane, this.class[i], this.at[i], this.end[i] - hack);
      if (hack) spread(lane, HACK, this.end[i] - hack, this.end[i]);
      if (this.lost[i]) marks[lane * BINS + Math.min(BINS - 1, Math.floor((this.at[i] - this.from_ns) / length))] = 1;
    }
    this.binned = { length, shares, marks };
    return this.binned;
  }
}

/** The first index whose value is not less than `value`. */
function lowerBound(values, value) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}
