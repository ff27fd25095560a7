// Time lines: a lane per station, and on it the frames that hold the air.

const LABEL = '11px system-ui, sans-serif';
/** More frames than these in view, or in a pixel, are summed up pixel by pixel, and more than those from bins made before. */
const MOST_DRAWN = 2500;
const MOST_IN_PIXEL = 3;
const MOST_SUMMED = 60000;
const AXIS = 22;

/** Strips of whole runs by width: they change with the theme alone. */
const overviews = new Map();
/** Colours and patterns of the theme in use. */
let ink = {};
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const css = (name) => style.getPropertyValue(name).trim();
  ink = Object.fromEntries(['ground', 'text', 'muted', 'grid', 'found', 'lost'].map((name) => [name, css(`--${name}`)]));
  ink.of = CLASSES.map(({ name }) => css(`--air-${name.replace('_', '-')}`));
  ink.on = ink.of.map(readable);
  // As four bytes in memory: red, green, blue, opacity.
  ink.words = ink.of.map((hex) => new Uint32Array(Uint8Array.of(...[1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)), 255).buffer)[0]);
  overviews.clear();
  ink.sides = sides.map((side) => css(side.ink.slice(4, -1)));
  ink.patterns = CLASSES.map(({ pattern }, at) => pattern && patternOf(pattern, ink.on[at]));
}

/** Black or white, whichever is read better on a colour. */
function readable(hex) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return red * 0.299 + green * 0.587 + blue * 0.114 > 140 ? '#000000' : '#ffffff';
}

function patternOf(name, colour) {
  const tile = new OffscreenCanvas(8, 8);
  const pen = tile.getContext('2d');
  pen.strokeStyle = pen.fillStyle = colour;
  pen.globalAlpha = 0.45;
  const line = (...points) => { pen.beginPath(); pen.moveTo(points[0], points[1]); pen.lineTo(points[2], points[3]); pen.stroke(); };
  if (name === 'slash' || name === 'cross') { line(-1, 9, 9, -1); line(-5, 5, 5, -5); line(3, 13, 13, 3); }
  if (name === 'cross') { line(-1, -1, 9, 9); }
  if (name === 'dots') { pen.globalAlpha = 0.6; for (const [x, y] of [[1, 1], [5, 5]]) pen.fillRect(x, y, 2, 2); }
  if (name === 'bars') { line(2, 0, 2, 8); line(6, 0, 6, 8); }
  if (name === 'lines') { line(0, 2, 8, 2); line(0, 6, 8, 6); }
  if (name === 'corner') { line(-1, -1, 9, 9); }
  return pen.createPattern(tile, 'repeat');
}

/** Width left of every drawing for names and numbers. */
function gutter() { return innerWidth < 600 ? 62 : 104; }

/** A canvas with a pen that draws in CSS pixels, of `height` if it is not as high yet. */
function penOf(canvas, height) {
  const ratio = Math.min(devicePixelRatio || 1, 2);
  const width = canvas.clientWidth;
  if (canvas.dataset.height !== String(height)) { canvas.style.height = `${height}px`; canvas.dataset.height = height; }
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  const pen = canvas.getContext('2d');
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = LABEL;
  pen.textBaseline = 'middle';
  pen.lineWidth = 1;
  return { pen, width, height };
}

/** From times to pixels right of the gutter, and back. */
function scaleOf([from, to], width) {
  const left = gutter();
  const each = (width - left - 8) / (to - from);
  return { left, right: width - 8, each, x: (time) => left + (time - from) * each, time: (x) => from + (x - left) / each };
}

/** Distances of 1, 2 or 5 times a power of ten that leave `room` pixels. */
function ticks([from, to], pixels, room) {
  const least = (to - from) * room / pixels;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least);
  const all = [];
  for (let at = Math.ceil(from / step); at * step <= to; at++) all.push(at * step);
  return { step, all };
}

function drawAxis(pen, range, scale, top, bottom, labels) {
  const { step, all } = ticks(range, scale.right - scale.left, 116);
  pen.strokeStyle = ink.grid;
  pen.fillStyle = ink.muted;
  pen.textAlign = 'center';
  pen.beginPath();
  for (const at of all) {
    const x = Math.round(scale.x(at)) + 0.5;
    pen.moveTo(x, top);
    pen.lineTo(x, bottom + (labels ? 4 : 0));
    if (labels && x > scale.left + 20 && x < scale.right - 34) pen.fillText(moment(at, step), x, bottom + 13);
  }
  pen.stroke();
  pen.textAlign = 'left';
}

/** Height of a lane: fewer stations have more room. */
function laneHeight(side) {
  return side.lanes <= 3 ? 48 : side.lanes <= 6 ? 40 : side.lanes <= 12 ? 32 : 22;
}

function laneName(side, lane) {
  const more = side.stations.length - side.lanes;
  return more > 0 && lane === side.lanes - 1 ? `${more + 1} others` : side.stations[lane];
}

function drawLanes(canvas, number) {
  const side = sides[number];
  const each = laneHeight(side);
  const { pen, width, height } = penOf(canvas, side.lanes * each + AXIS);
  const range = rangeOf(number);
  const scale = scaleOf(range, width);
  const bottom = height - AXIS;
  for (let lane = 0; lane < side.lanes; lane++) {
    if (lane % 2 === 0) { pen.fillStyle = ink.grid; pen.globalAlpha = 0.35; pen.fillRect(0, lane * each, width, each); pen.globalAlpha = 1; }
    pen.fillStyle = ink.text;
    pen.fillText(laneName(side, lane), 6, lane * each + each / 2, scale.left - 12);
  }
  drawAxis(pen, range, scale, 0, bottom, true);
  pen.save();
  pen.beginPath();
  pen.rect(scale.left, 0, scale.right - scale.left, height);
  pen.clip();
  const [first, last] = side.seen(...range);
  drawDeaf(pen, side, scale, each, range);
  if (last - first <= Math.min(MOST_DRAWN, MOST_IN_PIXEL * (scale.right - scale.left))) drawFrames(pen, side, scale, each, first, last);
  else drawDensity(pen, side, scale, each, range, first, last);
  drawFound(pen, side, scale, each, first, last);
  drawFocus(pen, side, scale, each);
  drawBeyond(pen, side, scale, bottom);
  drawCursor(pen, number, scale, bottom);
  pen.restore();
}

/** Time that is on no frame: before and behind the kept part. */
function drawBeyond(pen, side, scale, bottom) {
  pen.fillStyle = ink.grid;
  const kept = side.left_out ? side.end[side.count - 1] : side.until_ns;
  const [from, to] = [scale.x(side.from_ns), scale.x(kept)];
  if (from > scale.left) pen.fillRect(scale.left, 0, from - scale.left, bottom);
  if (to < scale.right) pen.fillRect(to, 0, scale.right - to, bottom);
}

function drawCursor(pen, number, scale, bottom) {
  if (view.cursor && (view.locked || view.cursor.side === number)) {
    const x = Math.round(scale.x(view.cursor.time)) + 0.5;
    pen.strokeStyle = ink.text;
    pen.globalAlpha = 0.5;
    pen.setLineDash([3, 3]);
    pen.beginPath();
    pen.moveTo(x, 0);
    pen.lineTo(x, bottom);
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }
  if (view.box && (view.locked || view.box.side === number)) {
    const [one, other] = [scale.x(view.box.from), scale.x(view.box.to)];
    pen.fillStyle = pen.strokeStyle = ink.found;
    pen.globalAlpha = 0.2;
    pen.fillRect(Math.min(one, other), 0, Math.abs(other - one), bottom);
    pen.globalAlpha = 1;
    pen.strokeRect(Math.min(one, other), 0.5, Math.abs(other - one), bottom - 1);
  }
}

/** Where the box of a frame stands on its lane. */
function boxOf(side, i, scale, each) {
  const room = each - 14;
  const tall = Math.max(4, Math.round(room * CLASSES[side.class[i]].height));
  const x = scale.x(side.at[i]);
  return { x, y: side.laneOf(i) * each + 7 + room - tall, w: Math.max(1, side.duration[i] * scale.each), h: tall };
}

function drawFrames(pen, side, scale, each, first, last) {
  for (let i = first; i < last; i++) drawWait(pen, side, i, scale, each);
  for (let i = first; i < last; i++) drawFrame(pen, side, i, scale, each);
}

/** The time before a frame and behind it: idle slots and the NAV. */
function drawWait(pen, side, i, scale, each) {
  const lane = side.laneOf(i) * each;
  const waited = backoff(side, i);
  if (waited) {
    const [from, to] = [scale.x(side.at[i] - side.idle[i]), scale.x(side.at[i])];
    const begin = scale.x(side.at[i] - side.idle[i] + waited.aifs);
    const y = lane + each - 15;
    if (to - from > 2) {
      pen.fillStyle = ink.muted;
      pen.globalAlpha = 0.22;
      pen.fillRect(from, y + 3, begin - from, 2);
      pen.fillRect(begin, y, to - begin, 8);
      pen.globalAlpha = 1;
      const slot = side.slot_ns * scale.each;
      if (slot >= 4) {
        pen.fillStyle = ink.ground;
        for (let at = 1; at < waited.slots; at++) pen.fillRect(begin + at * slot, y, 1, 8);
      }
      const words = [`AIFS + ${plural(waited.slots, 'slot')}`, `${waited.slots}`];
      label(pen, words, begin + 2, y - 7, to - begin - 4, ink.muted);
    }
  }
  if (side.nav[i]) {
    const x = scale.x(side.end[i]);
    pen.fillStyle = ink.muted;
    pen.globalAlpha = 0.5;
    pen.fillRect(x, lane + each - 5, side.nav[i] * scale.each, 3);
    pen.globalAlpha = 1;
  }
}

/** The first of several words that has room. */
function label(pen, words, x, y, room, colour) {
  const fit = words.find((word) => word && pen.measureText(word).width <= room);
  if (!fit) return;
  pen.fillStyle = colour;
  pen.fillText(fit, x, y);
}

function fill(pen, what, x, y, w, h) {
  pen.fillStyle = ink.of[what];
  pen.fillRect(x, y, w, h);
  if (ink.patterns[what] && w > 3) { pen.fillStyle = ink.patterns[what]; pen.fillRect(x, y, w, h); }
}

function drawFrame(pen, side, i, scale, each) {
  const { x, y, w, h } = boxOf(side, i, scale, each);
  const what = side.class[i];
  const hack = side.hack[i] * scale.each;
  fill(pen, what, x, y, Math.max(1, w - hack), h);
  if (hack) fill(pen, HACK, x + w - Math.max(1, hack), y, Math.max(1, hack), h);
  if (w < 3) {
    if (side.lost[i] && what !== COLLISION) { pen.fillStyle = ink.lost; pen.fillRect(x, y - 4, Math.max(1, w), 3); }
    return;
  }
  if (side.lost[i] && what !== COLLISION) drawLost(pen, side, i, x, y, w, h);
  if (side.retries[i]) {
    pen.fillStyle = ink.on[what];
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x + Math.min(8, w), y);
    pen.lineTo(x, y + Math.min(8, h));
    pen.fill();
  }
  pen.strokeStyle = ink.ground;
  pen.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
  if (h >= 11 && w > 12) nameFrame(pen, side, i, { x, y, w, h, hack, what });
}

/** Cells of the MPDUs that did not arrive; where they have no room a line as long as their share. */
function drawLost(pen, side, i, x, y, w, h) {
  const mpdus = side.mpdus[i];
  const cell = w / mpdus;
  if (cell >= 3) {
    for (let mpdu = 0; mpdu < mpdus; mpdu++) {
      const from = x + mpdu * cell;
      if (!side.isLost(i, mpdu)) { if (cell >= 6) { pen.fillStyle = ink.ground; pen.globalAlpha = 0.4; pen.fillRect(from, y, 1, h); pen.globalAlpha = 1; } continue; }
      pen.fillStyle = ink.ground;
      pen.fillRect(from + 0.5, y + 0.5, cell - 1, h - 1);
      pen.strokeStyle = ink.lost;
      pen.lineWidth = 1.5;
      pen.strokeRect(from + 1, y + 1, cell - 2, h - 2);
      const arm = Math.min(4, cell / 2 - 1, h / 2 - 1);
      const [cx, cy] = [from + cell / 2, mpdus === 1 ? y + h - 7 : y + h / 2];
      pen.beginPath();
      pen.moveTo(cx - arm, cy - arm); pen.lineTo(cx + arm, cy + arm);
      pen.moveTo(cx + arm, cy - arm); pen.lineTo(cx - arm, cy + arm);
      pen.stroke();
      pen.lineWidth = 1;
    }
  } else {
    pen.fillStyle = ink.lost;
    pen.fillRect(x, y - 4, Math.max(2, w * side.lost[i] / mpdus), 3);
  }
}

function nameFrame(pen, side, i, { x, y, w, h, hack, what }) {
  const from = Math.max(x, scaleLeft()) + 4;
  const room = x + w - hack - from - 4;
  const kind = side.kindOf(i);
  const many = side.mpdus[i];
  const words = kind === 'data' && many === 1 ? ['data'] : kind === 'data' ? [`data, ${plural(many, 'MPDU')}`, `data ${many}`, `${many}`] :
    kind === 'tcp-ack' ? [plural(many, 'ACK'), `${many}`] :
      kind === 'block-ack' ? ['Block Ack', 'BA'] : kind === 'ack' ? ['ACK'] :
        kind === 'block-ack-request' ? ['Block Ack Request', 'BAR'] : [KIND_WORDS[kind]];
  if (what === COLLISION) words.unshift(`collided: ${words[0]}`);
  // A frame that is lost as a whole has its cross where words would stand.
  const colour = side.lost[i] === many && what !== COLLISION ? ink.lost : ink.on[what];
  const crossed = side.lost[i] > 0 && what !== COLLISION && w / many >= 3 && many > 1;
  if (!crossed) label(pen, words, from, Math.min(y + h / 2, y + 12) + 1, room, colour);
  if (hack > 14) {
    const bytes = side.appended[i];
    label(pen, [`${bytes} bytes of HACK`, `HACK ${bytes}`, `+${bytes}`], x + w - hack + 4, y + h / 2 + 1, hack - 8, ink.on[HACK]);
  }
}
function scaleLeft() { return gutter(); }

/** Shares of the air, pixel by pixel. */
function drawDensity(pen, side, scale, each, range, first, last) {
  const pixels = Math.ceil(scale.right - scale.left);
  const shares = new Float32Array(side.lanes * CLASSES.length * pixels);
  const marks = new Uint8Array(side.lanes * pixels);
  if (last - first <= MOST_SUMMED) sumFrames(side, scale, pixels, first, last, shares, marks);
  else sumBins(side, range, pixels, shares, marks);
  for (let lane = 0; lane < side.lanes; lane++) {
    const stack = stackOf(shares.subarray(lane * CLASSES.length * pixels, (lane + 1) * CLASSES.length * pixels), pixels, each - 11);
    pen.drawImage(stack, scale.left, lane * each + 6);
    pen.fillStyle = ink.lost;
    for (let pixel = 0; pixel < pixels; pixel++) {
      if (marks[lane * pixels + pixel]) pen.fillRect(scale.left + pixel, lane * each + 2, 1, 2);
    }
  }
}

/** A picture of stacked shares: class upon class, each pixel as high as its share; the smallest share is seen. */
function stackOf(shares, pixels, tall) {
  const LEAST = 3;
  const image = new ImageData(pixels, tall);
  const words = new Uint32Array(image.data.buffer);
  for (let pixel = 0; pixel < pixels; pixel++) {
    let sum = 0;
    for (let what = 0; what < CLASSES.length; what++) sum += shares[what * pixels + pixel];
    if (sum <= 0) continue;
    const stretch = Math.min(1 / sum, Math.max(1, LEAST / (sum * tall)));
    let [below, row] = [0, tall - 1];
    for (let what = 0; what < CLASSES.length; what++) {
      below += shares[what * pixels + pixel] * stretch * tall;
      for (; row >= 0 && tall - row <= below + 0.5; row--) words[row * pixels + pixel] = ink.words[what];
    }
  }
  const canvas = new OffscreenCanvas(pixels, tall);
  canvas.getContext('2d').putImageData(image, 0, 0);
  return canvas;
}

function sumFrames(side, scale, pixels, first, last, shares, marks) {
  const add = (row, from, to) => {
    const [one, other] = [scale.x(from) - scale.left, scale.x(to) - scale.left];
    for (let pixel = Math.max(0, Math.floor(one)); pixel < Math.min(pixels, other); pixel++) {
      shares[row + pixel] += Math.min(other, pixel + 1) - Math.max(one, pixel);
    }
  };
  for (let i = first; i < last; i++) {
    const lane = side.laneOf(i);
    const split = side.end[i] - side.hack[i];
    add((lane * CLASSES.length + side.class[i]) * pixels, side.at[i], split);
    if (side.hack[i]) add((lane * CLASSES.length + HACK) * pixels, split, side.end[i]);
    const at = Math.floor(scale.x(side.at[i]) - scale.left);
    if (side.lost[i] && at >= 0 && at < pixels) marks[lane * pixels + at] = 1;
  }
}

function sumBins(side, [from, to], pixels, shares, marks) {
  const { length, shares: all, marks: lost } = side.bins();
  const rows = side.lanes * CLASSES.length;
  for (let pixel = 0; pixel < pixels; pixel++) {
    const at = (time) => Math.min(BINS, Math.max(0, Math.round((time - side.from_ns) / length)));
    const one = at(from + (to - from) * pixel / pixels);
    const other = Math.max(one + 1, at(from + (to - from) * (pixel + 1) / pixels));
    if (one >= BINS) continue;
    for (let row = 0; row < rows; row++) {
      let sum = 0;
      for (let bin = one; bin < other; bin++) sum += all[row * BINS + bin];
      shares[row * pixels + pixel] = sum / (other - one);
    }
    for (let lane = 0; lane < side.lanes; lane++) {
      for (let bin = one; bin < other; bin++) if (lost[lane * BINS + bin]) marks[lane * pixels + pixel] = 1;
    }
  }
}

/** Frames that the search found. */
function drawFound(pen, side, scale, each, first, last) {
  const rows = view.found?.[side.number];
  if (!rows) return;
  pen.fillStyle = ink.found;
  let drawn = -1;
  for (let at = lowerBound(rows, first); at < rows.length && rows[at] < last; at++) {
    const x = Math.round(scale.x(side.at[rows[at]]));
    const lane = side.laneOf(rows[at]);
    if (x * MAX_LANES + lane === drawn) continue;
    drawn = x * MAX_LANES + lane;
    const y = lane * each;
    pen.beginPath();
    pen.moveTo(x - 4, y); pen.lineTo(x + 4, y); pen.lineTo(x, y + 6);
    pen.fill();
  }
}

function drawFocus(pen, side, scale, each) {
  if (view.focus?.side !== side.number) return;
  const { x, y, w, h } = boxOf(side, view.focus.row, scale, each);
  pen.strokeStyle = ink.ground;
  pen.lineWidth = 5;
  pen.strokeRect(x - 2, y - 2, Math.max(w, 3) + 4, h + 4);
  pen.strokeStyle = ink.found;
  pen.lineWidth = 2.5;
  pen.strokeRect(x - 2, y - 2, Math.max(w, 3) + 4, h + 4);
  pen.lineWidth = 1;
}

/** The frame nearest to a place on the time line of a scheme, and how many share its pixel. */
function frameAt(canvas, number, x, y) {
  const side = sides[number];
  const each = laneHeight(side);
  const lane = Math.floor(y / each);
  if (lane >= side.lanes) return null;
  const scale = scaleOf(rangeOf(number), canvas.clientWidth);
  if (x < scale.left || x > scale.right) return null;
  const [from, to] = [scale.time(x - 4), scale.time(x + 4)];
  const [first, last] = side.seen(from, to);
  let [best, least, shared] = [-1, Infinity, 0];
  const time = scale.time(x);
  for (let i = first; i < last; i++) {
    if (side.laneOf(i) !== lane || side.end[i] < from) continue;
    if (side.end[i] >= scale.time(x - 0.5) && side.at[i] <= scale.time(x + 0.5)) shared++;
    const away = Math.max(0, side.at[i] - time, time - side.end[i]);
    if (away < least) [best, least] = [i, away];
  }
  return best < 0 ? null : { side: number, row: best, shared };
}

/** All of the run in a strip, and the part that is seen. */
function drawOverview(canvas) {
  const tall = 14;
  const { pen, width, height } = penOf(canvas, sides.length * (tall + 2) + 2);
  const range = wholeRange();
  const scale = scaleOf(range, width);
  const pixels = Math.ceil(scale.right - scale.left);
  sides.forEach((side, number) => {
    pen.fillStyle = ink.text;
    pen.fillText(side.scheme, 6, number * (tall + 2) + tall / 2 + 2, scale.left - 12);
    pen.drawImage(overviewOf(side, range, pixels, tall), scale.left, number * (tall + 2) + 2);
  });
  const [from, to] = rangeOf(view.current).map(scale.x);
  pen.fillStyle = ink.ground;
  pen.globalAlpha = 0.6;
  pen.fillRect(scale.left, 0, from - scale.left, height);
  pen.fillRect(to, 0, scale.right - to, height);
  pen.globalAlpha = 1;
  pen.strokeStyle = ink.found;
  pen.lineWidth = 2;
  pen.strokeRect(from - 1, 1, Math.max(4, to - from + 2), height - 2);
}

function overviewOf(side, range, pixels, tall) {
  const key = `${side.number} ${pixels}`;
  if (!overviews.has(key)) {
    const lanes = new Float32Array(side.lanes * CLASSES.length * pixels);
    sumBins(side, range, pixels, lanes, new Uint8Array(side.lanes * pixels));
    const all = new Float32Array(CLASSES.length * pixels);
    lanes.forEach((share, at) => { all[at % all.length] += share; });
    overviews.set(key, stackOf(all, pixels, tall));
  }
  return overviews.get(key);
}
