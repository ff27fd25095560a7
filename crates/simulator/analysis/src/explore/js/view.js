// The view: which stretch of time of which scheme, and the frame picked out in it.

const sides = [];
const view = {
  /** A stretch of time per scheme; while locked they are equal. */
  ranges: [],
  locked: true,
  /** The scheme that keys are for. */
  current: 0,
  /** The frame picked out: its scheme and row. */
  focus: null,
  /** The time under the pointer, and the scheme it is over. */
  cursor: null,
  /** Rows that the search found, per scheme; `null` without a search. */
  found: null,
  /** Number of the flow in the plots; 0 for all. */
  flow: 0,
  /** Dragging draws a box to zoom to. */
  boxing: false,
  box: null,
};
/** No stretch is shorter: a symbol of 802.11 takes 3.6 µs. */
const SHORTEST = 2e3;

/** Everything that can be seen. */
function wholeRange() {
  return [Math.min(...sides.map((side) => side.from_ns)), Math.max(...sides.map((side) => side.until_ns))];
}

function rangeOf(number) { return view.ranges[number]; }

/** Shows a stretch of time: of scheme `number`, and of all while they are locked. */
function show(number, from, to) {
  const [first, last] = wholeRange();
  let length = Math.min(Math.max(to - from, SHORTEST), last - first);
  let start = (from + to) / 2 - length / 2;
  start = Math.min(Math.max(start, first), last - length);
  const set = (at) => { view.ranges[at] = [start, start + length]; };
  if (view.locked) sides.forEach((_, at) => set(at)); else set(number);
  redraw();
}

/** Zooms by `factor` about `time`. */
function zoom(number, factor, time) {
  const [from, to] = rangeOf(number);
  const about = time ?? (from + to) / 2;
  const length = Math.min(Math.max((to - from) * factor, SHORTEST), wholeRange()[1] - wholeRange()[0]);
  const start = about - (about - from) * (length / (to - from));
  show(number, start, start + length);
}

/** Moves by a share of the view. */
function pan(number, share) {
  const [from, to] = rangeOf(number);
  show(number, from + (to - from) * share, to + (to - from) * share);
}

/** Picks out a frame and brings it into view. */
function pick(number, row, near = false) {
  const side = sides[number];
  view.focus = { side: number, row };
  view.current = number;
  const [from, to] = rangeOf(number);
  const [begin, end] = [side.at[row], side.end[row]];
  if (near) {
    const length = Math.max((end - begin) * 6, 4e5);
    show(number, (begin + end) / 2 - length / 2, (begin + end) / 2 + length / 2);
  } else if (begin < from || end > to) {
    show(number, (begin + end) / 2 - (to - from) / 2, (begin + end) / 2 + (to - from) / 2);
  } else redraw();
  tellFocus();
}

/** The frame before or behind the one picked out; without one the first in view. */
function step(by) {
  const number = view.current;
  const side = sides[number];
  if (!side.count) return;
  const row = view.focus?.side === number ? view.focus.row + by : side.firstAt(rangeOf(number)[0]);
  pick(number, Math.min(Math.max(row, 0), side.count - 1));
}

/** The next found frame, or the one before: from the one picked out, or from the view. */
function stepFound(by) {
  const all = view.found?.flatMap((rows, side) => Array.from(rows, (row) => ({ side, row }))) ?? [];
  if (!all.length) return;
  const time = ({ side, row }) => sides[side].at[row];
  all.sort((one, other) => time(one) - time(other) || one.side - other.side);
  const { focus } = view;
  let at = focus ? all.findIndex(({ side, row }) => side === focus.side && row === focus.row) : -1;
  if (at >= 0) at += by;
  else {
    const from = focus ? sides[focus.side].at[focus.row] : rangeOf(view.current)[0];
    const later = all.findIndex((one) => time(one) >= from);
    at = by > 0 ? later : (later < 0 ? all.length : later) - 1;
  }
  at = (at + all.length) % all.length;
  pick(all[at].side, all[at].row, all.length > 0 && rangeOf(all[at].side)[1] - rangeOf(all[at].side)[0] > 1e8);
  view.foundAt = at;
  tellFound();
}

/** Looks for frames that fit `text`. */
function search(text) {
  const asked = query(text);
  view.foundAt = null;
  if (asked.error || !asked.fits) view.found = null;
  else {
    view.found = sides.map((side) => {
      const rows = [];
      for (let i = 0; i < side.count; i++) if (asked.fits(side, i)) rows.push(i);
      return Uint32Array.from(rows);
    });
  }
  if (asked.jump != null && !asked.error) {
    const length = Math.min(rangeOf(view.current)[1] - rangeOf(view.current)[0], 2e6);
    show(view.current, asked.jump - length / 2, asked.jump + length / 2);
    const side = sides[view.current];
    // The frame on the air then, or the next.
    const row = side.seen(asked.jump, asked.jump + 1)[0];
    if (row < side.count) pick(view.current, row);
  }
  redraw();
  tellFound(asked.error);
}
