// Several links of one device: the Block Ack window that they share, waits in the reorder buffer, and clients whose one radio is
// elsewhere.

/** Classes whose colours stand for the links. */
const LINK_CLASSES = [DATA, TCP_ACK, BEACON];
const WINDOW_HEIGHT = 150;

function hostOf(side, lane) { return lane % side.hosts; }
function linkOf(side, i) { return Math.floor(side.from[i] / side.hosts); }

/** Sender and receiver of the data that is shown: those of the selected flow, or of the first data. */
function pairOf(side) {
  for (let i = 0; i < side.count; i++) {
    if (side.kindOf(i) === 'data' && side.to[i] && (!view.flow || side.flow[i] === view.flow)) {
      return { from: hostOf(side, side.from[i]), to: hostOf(side, side.to[i] - 1), category: side.category[i] };
    }
  }
  return null;
}

/** Data from one station to another over all links: PPDUs with their place in the window, how long each was held, and that in words. */
function windowOf(side) {
  const pair = pairOf(side);
  if (!pair) return null;
  const key = `${pair.from} ${pair.to} ${pair.category}`;
  side.windows ??= new Map();
  if (!side.windows.has(key)) side.windows.set(key, makeWindow(side, pair));
  return side.windows.get(key);
}

function makeWindow(side, { from, to, category }) {
  const boxes = [];
  let latest = null;
  /** Numbers count on beyond 4095. */
  const counted = (number) => {
    if (latest === null) return latest = number;
    const ahead = (((number - latest) % 4096) + 4096) % 4096;
    return latest + (ahead > 2048 ? ahead - 4096 : ahead);
  };
  // Numbers that did not arrive, ascending, once their PPDU has ended.
  let [again, flying] = [[], []];
  const settle = (time) => {
    for (const box of flying) if (box.end <= time) again.push(...box.missing);
    flying = flying.filter((box) => box.end > time);
    again.sort((one, other) => one - other);
  };
  for (let i = 0; i < side.count; i++) {
    if (!side.sends(i) || !side.mac_count[i] || side.category[i] !== category || !side.to[i]) continue;
    if (hostOf(side, side.from[i]) !== from || hostOf(side, side.to[i] - 1) !== to) continue;
    const low = counted(side.mac[i]);
    const high = low + side.mac_count[i] - 1;
    latest = Math.max(latest, high);
    settle(side.at[i]);
    const start = Math.min(low, ...again.slice(0, 1), ...flying.map((box) => box.low));
    // The lowest numbers are sent again first, and new ones follow without a gap.
    const [mpdus, retries] = [side.mpdus[i], Math.min(side.retries[i], again.length)];
    const numbers = again.splice(0, retries);
    for (let number = high - (mpdus - retries) + 1; number <= high; number++) numbers.push(number);
    const [missing, arrived] = [[], []];
    numbers.forEach((number, mpdu) => (side.isLost(i, mpdu) ? missing : arrived).push(number));
    const box = {
      link: linkOf(side, i), at: side.at[i], end: side.end[i], low, from: low - start, to: high + 1 - start, missing, arrived, released: null,
    };
    boxes.push(box);
    flying.push(box);
  }
  release(boxes, side.reorder_ns);
  return { boxes, words: windowWords(side, boxes) };
}

/** When the last packet of each PPDU left the reorder buffer: when all numbers below had arrived, or were given up. */
function release(boxes, patience) {
  const here = new Set();
  let held = [];
  let expected = boxes.length ? boxes[0].low : 0;
  const leave = (time) => {
    while (here.delete(expected)) expected++;
    held = held.filter((box) => {
      if (box.arrived[box.arrived.length - 1] >= expected) return true;
      box.released = time;
      return false;
    });
  };
  for (const box of boxes.toSorted((one, other) => one.end - other.end)) {
    while (held.length && held[0].end + patience < box.end) {
      const time = held[0].end + patience;
      expected = Math.min(...here);
      leave(time);
    }
    if (!box.arrived.length) continue;
    for (const number of box.arrived) if (number >= expected) here.add(number);
    held.push(box);
    leave(box.end);
  }
}

/** The window in words. */
function windowWords(side, boxes) {
  const held = boxes.filter(({ end, released }) => released > end);
  const longest = held.reduce((most, { end, released }) => Math.max(most, released - end), 0);
  return `The common Block Ack window of ${side.block_ack_window} MPDUs: ${plural(boxes.length, 'PPDU')}, ` +
    `${grouped(held.length)} of them held in the reorder buffer, for ${span(longest)} at most`;
}

function drawWindow(canvas, number) {
  const side = sides[number];
  const { pen, width, height } = penOf(canvas, WINDOW_HEIGHT);
  const range = rangeOf(number);
  const scale = scaleOf(range, width);
  const shown = windowOf(side);
  drawAxis(pen, range, scale, 0, height, false);
  pen.fillStyle = ink.text;
  pen.fillText('window', 6, 14, scale.left - 12);
  if (!shown) return;
  canvas.setAttribute('aria-label', shown.words);
  const top = 6;
  const y = (place) => height - top - place / side.block_ack_window * (height - 2 * top);
  pen.textAlign = 'right';
  pen.fillStyle = ink.muted;
  for (const place of [0, side.block_ack_window]) pen.fillText(String(place), scale.left - 6, y(place));
  pen.textAlign = 'left';
  pen.save();
  pen.beginPath();
  pen.rect(scale.left, 0, scale.right - scale.left, height);
  pen.clip();
  pen.fillStyle = ink.grid;
  pen.globalAlpha = 0.35;
  pen.fillRect(scale.left, y(side.block_ack_window), scale.right - scale.left, height - 2 * top);
  pen.globalAlpha = 1;
  for (const { at, end, from, to, link, released } of shown.boxes) {
    if (Math.max(end, released ?? end) < range[0] || at > range[1]) continue;
    pen.fillStyle = ink.of[LINK_CLASSES[link]];
    pen.fillRect(scale.x(at), y(to), Math.max(1, (end - at) * scale.each), Math.max(1.5, y(from) - y(to)));
    if (released > end) {
      pen.fillStyle = ink.lost;
      pen.fillRect(scale.x(end), y(to), Math.max(1, (released - end) * scale.each), 2);
    }
  }
  drawCursor(pen, number, scale, height);
  pen.restore();
}

/** Exchanges of each client that has one radio: on which link, from when to when. */
function exchangesOf(side) {
  if (side.exchanges) return side.exchanges;
  side.exchanges = side.transition_ns.map(() => []);
  const open = new Map();
  for (let i = 0; i < side.count; i++) {
    for (const lane of [side.from[i], side.to[i] - 1]) {
      const host = lane < 0 ? 0 : hostOf(side, lane);
      if (!side.transition_ns[host]) continue;
      const link = linkOf(side, i);
      const last = open.get(lane);
      const goesOn = last && side.at[i] <= last.to + side.sifs_ns + side.slot_ns / 2;
      // A call without an answer is no exchange.
      if (!goesOn && side.kindOf(i) === 'trigger') { open.set(lane, { link, from: side.at[i], to: side.end[i], called: true }); continue; }
      if (goesOn) {
        if (last.called) { last.called = false; side.exchanges[host].push(last); }
        last.to = side.end[i];
      } else {
        const exchange = { link, from: side.at[i], to: side.end[i] };
        open.set(lane, exchange);
        side.exchanges[host].push(exchange);
      }
    }
  }
  return side.exchanges;
}

/** Lanes on which a client hears nothing: those of other links during an exchange, and all until its radio listens again. */
function drawDeaf(pen, side, scale, each, [from, to]) {
  if (!side.transition_ns.some((time) => time)) return;
  pen.fillStyle = ink.muted;
  exchangesOf(side).forEach((all, host) => {
    const back = side.transition_ns[host];
    for (const exchange of all) {
      if (exchange.to + back < from || exchange.from > to) continue;
      for (let lane = host; lane < side.lanes; lane += side.hosts) {
        const there = Math.floor(lane / side.hosts) === exchange.link;
        const [y, tall] = [lane * each + 2, each - 4];
        pen.globalAlpha = 0.14;
        if (!there) pen.fillRect(scale.x(exchange.from), y, (exchange.to - exchange.from) * scale.each, tall);
        pen.globalAlpha = 0.34;
        pen.fillRect(scale.x(exchange.to), y, back * scale.each, tall);
      }
    }
  });
  pen.globalAlpha = 1;
}
