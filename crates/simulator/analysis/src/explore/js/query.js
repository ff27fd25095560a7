// The language of the search field: words that a frame must fit, all of them.

/** Words without a value. */
const IS = {
  lost: (side, i) => side.lost[i] > 0,
  collided: (side, i) => side.has(i, 'collided'),
  retry: (side, i) => side.retries[i] > 0,
  hack: (side, i) => side.appended[i] > 0,
  sync: (side, i) => side.has(i, 'sync'),
  again: (side, i) => side.has(i, 'again'),
  'more-data': (side, i) => side.has(i, 'moreData'),
};
/** Words before a colon and a value: the values allowed. */
const HAS = {
  kind: (value) => {
    const kinds = Object.keys(KIND_WORDS);
    if (!kinds.includes(value)) throw `no kind ${value}; there are ${kinds.join(', ')}`;
    return (side, i) => side.kindOf(i) === value;
  },
  station: (value) => (side, i) => named(station(side, side.from[i]), value),
  to: (value) => (side, i) => named(receiver(side, i), value),
  scheme: (value) => (side) => side.scheme === value,
  category: (value) => (side, i) => {
    const short = side.categories[side.category[i]];
    return short === value || CATEGORY_WORDS[short] === value;
  },
  flow: (value) => { const flow = whole(value); return (side, i) => side.flow[i] === flow; },
  seq: (value) => {
    const byte = whole(value);
    return (side, i) => side.sequence[i] <= byte && byte < side.sequence[i] + side.sequence_count[i];
  },
  ack: (value) => { const byte = whole(value); return (side, i) => side.has(i, 'acknowledges') && side.acknowledges[i] === byte; },
  mac: (value) => {
    const number = whole(value);
    return (side, i) => side.mac_count[i] > 0 && (number - side.mac[i] + 4096) % 4096 < side.mac_count[i];
  },
};
/** Words before < or > and a number. */
const IS_MORE = {
  mpdus: [(side, i) => side.mpdus[i], whole],
  losses: [(side, i) => side.lost[i], whole],
  bytes: [(side, i) => side.bytes[i], whole],
  appended: [(side, i) => side.appended[i], whole],
  duration: [(side, i) => side.duration[i], time],
  idle: [(side, i) => side.idle[i], time],
  nav: [(side, i) => side.nav[i], time],
};
const WORDS = 'kind:block-ack  station:"client 1"  to:ap  lost  retry  collided  hack  flow:1  seq:1234  ack:1234  ' +
  'mac:7  mpdus>10  duration>1ms  idle>100us  scheme:stock  -lost  t=1.5s';

function named(name, value) { return name.toLowerCase() === value.toLowerCase(); }
function whole(text) {
  if (!/^\d+$/.test(text)) throw `${text} is no whole number`;
  return Number(text);
}
/** A time with its unit; seconds without. */
function time(text) {
  const parts = /^(\d+(?:\.\d+)?)\s*(s|ms|us|µs|ns)?$/.exec(text);
  if (!parts) throw `${text} is no time such as 1.5s, 3ms or 20us`;
  return Number(parts[1]) * { s: 1e9, ms: 1e6, us: 1e3, 'µs': 1e3, ns: 1 }[parts[2] ?? 's'];
}

/** The meaning of `text`: `fits(side, i)`, or a `moment` to go to; `error` where it cannot be read. */
function query(text) {
  const tests = [];
  let jump = null;
  try {
    for (const [word] of text.matchAll(/(?:[^\s"]|"[^"]*")+/g)) {
      const negated = word.startsWith('-') && word.length > 1;
      const said = negated ? word.slice(1) : word;
      const parts = /^([a-z-]+)([:=<>])(.*)$/i.exec(said);
      const name = (parts?.[1] ?? said).toLowerCase();
      const value = (parts?.[3] ?? '').replaceAll('"', '');
      if (parts && name === 't') {
        jump = time(value);
        continue;
      }
      let test;
      if (!parts && Object.hasOwn(IS, name)) test = IS[name];
      else if (parts && ':='.includes(parts[2]) && Object.hasOwn(HAS, name)) test = HAS[name](value);
      else if (parts && Object.hasOwn(IS_MORE, name)) {
        const [of, read] = IS_MORE[name];
        const limit = read(value);
        test = parts[2] === '>' ? (side, i) => of(side, i) > limit :
          parts[2] === '<' ? (side, i) => of(side, i) < limit : (side, i) => of(side, i) === limit;
      } else throw `${said} is not understood; words are ${WORDS}`;
      tests.push(negated ? (side, i) => !test(side, i) : test);
    }
  } catch (error) {
    if (typeof error !== 'string') throw error;
    return { error };
  }
  return { jump, fits: tests.length ? (side, i) => tests.every((test) => test(side, i)) : null };
}
