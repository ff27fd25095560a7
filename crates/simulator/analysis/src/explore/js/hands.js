// Input: pointers, wheels and keys.

/** Moving and zooming on a canvas; `numberOf` says whose time it shows. */
function takePointers(canvas, numberOf, { picks = false } = {}) {
  const down = new Map();
  let last = null;
  const timeAt = (event) => scaleOf(rangeOf(numberOf()), canvas.clientWidth).time(event.offsetX);
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    last = { moved: 0, range: [...rangeOf(numberOf())], x: event.offsetX, time: timeAt(event) };
    view.current = numberOf();
    if (view.boxing || event.shiftKey) view.box = { side: numberOf(), from: last.time, to: last.time };
  });
  canvas.addEventListener('pointermove', (event) => {
    const number = numberOf();
    view.cursor = { side: number, time: timeAt(event) };
    const own = down.get(event.pointerId);
    if (own && last) {
      last.moved = Math.max(last.moved, Math.abs(event.offsetX - last.x));
      if (down.size === 2) return pinch(event, number);
      if (view.box) view.box.to = view.cursor.time;
      else if (last.moved > 3) {
        const each = (last.range[1] - last.range[0]) / (canvas.clientWidth - gutter() - 8);
        const by = (last.x - event.offsetX) * each;
        show(number, last.range[0] + by, last.range[1] + by);
      }
    }
    if (picks) hover(canvas, number, event, down.size > 0);
    redraw();
  });
  const pinch = (event, number) => {
    const before = [...down.values()].map(({ x }) => x);
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    const after = [...down.values()].map(({ x }) => x);
    const apart = (xs) => Math.max(8, Math.abs(xs[0] - xs[1]));
    const scale = scaleOf(rangeOf(number), canvas.clientWidth);
    zoom(number, apart(before) / apart(after), scale.time((after[0] + after[1]) / 2));
    last.moved = 99;
  };
  const up = (event) => {
    if (!down.delete(event.pointerId)) return;
    const number = numberOf();
    if (view.box) {
      const { from, to } = view.box;
      view.box = null;
      setBoxing(false);
      if (Math.abs(to - from) > SHORTEST / 10 && last.moved > 3) show(number, Math.min(from, to), Math.max(from, to));
    } else if (picks && last?.moved <= 3 && event.type === 'pointerup') {
      const found = frameAt(canvas, number, event.offsetX, event.offsetY);
      if (found) pick(number, found.row);
    }
    redraw();
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('pointerleave', () => { if (!down.size) { view.cursor = null; hideTip(); redraw(); } });
  canvas.addEventListener('dblclick', (event) => zoom(numberOf(), 0.25, timeAt(event)));
  canvas.addEventListener('wheel', (event) => {
    // Over plots a wheel alone moves the page.
    if (!picks && !event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const by = event.deltaMode ? 16 : 1;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      pan(numberOf(), (event.deltaX || event.deltaY) * by / canvas.clientWidth);
    } else zoom(numberOf(), Math.exp(event.deltaY * by * 0.0016), timeAt(event));
  }, { passive: false });
}

/** The strip of the whole run: where one points is shown. */
function takeOverview(canvas) {
  let held = false;
  const go = (event) => {
    const time = scaleOf(wholeRange(), canvas.clientWidth).time(event.offsetX);
    const [from, to] = rangeOf(view.current);
    show(view.current, time - (to - from) / 2, time + (to - from) / 2);
  };
  canvas.addEventListener('pointerdown', (event) => { held = true; canvas.setPointerCapture(event.pointerId); go(event); });
  canvas.addEventListener('pointermove', (event) => { if (held) go(event); });
  for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, () => { held = false; });
}

/** Tells of the frame under the pointer. */
function hover(canvas, number, event, held) {
  const found = held || event.pointerType === 'touch' ? null : frameAt(canvas, number, event.offsetX, event.offsetY);
  if (!found) return hideTip();
  const side = sides[number];
  const tip = part('tip');
  const many = found.shared > 1 ? [make('p', {}, `${plural(found.shared, 'frame')} in this pixel; zoom in to tell them apart. The nearest:`)] : [];
  tip.replaceChildren(...many, listOf(fields(side, found.row).slice(many.length ? 1 : 0)));
  tip.hidden = false;
  const room = tip.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, innerWidth - room.width - 8);
  const y = event.clientY + 18 + room.height > innerHeight ? event.clientY - room.height - 14 : event.clientY + 18;
  tip.style.transform = `translate(${Math.max(4, x)}px,${Math.max(4, y)}px)`;
}
function hideTip() { part('tip').hidden = true; }

/** The keys: names, label, text and action of each. */
const KEYS = [
  [['ArrowLeft', 'ArrowRight'], '← →', 'move; with Shift by a page', (event) => pan(view.current, (event.key === 'ArrowLeft' ? -1 : 1) * (event.shiftKey ? 1 : 0.15))],
  [['+', '=', '-'], '+ −', 'zoom', (event) => zoom(view.current, event.key === '-' ? 1.6 : 1 / 1.6, focusTime())],
  [['0', 'Home'], '0', 'everything', () => show(view.current, ...wholeRange())],
  [[']', '['], '[ ]', 'frame before, next frame', (event) => step(event.key === '[' ? -1 : 1)],
  [['Enter', 'z'], 'z', 'zoom to the frame', () => view.focus && pick(view.focus.side, view.focus.row, true)],
  [['n', 'N'], 'n N', 'next found, found before', (event) => stepFound(event.key === 'n' ? 1 : -1)],
  [['/'], '/', 'search', () => part('query').focus()],
  [['s'], 's', 'the other scheme', () => switchSide()],
  [['b'], 'b', 'draw a box to zoom to; Shift and drag does too', () => setBoxing(!view.boxing)],
  [['l'], 'l', 'one time for both, or each its own', () => setLocked(!view.locked)],
  [['t'], 't', 'light, dark', () => switchTheme()],
  [['?'], '?', 'these keys', () => part('keys').showModal()],
  [['Escape'], 'Esc', 'nothing picked out', () => { view.focus = null; setBoxing(false); tellFocus(); redraw(); }],
];

/** The time of the frame picked out, if it is seen. */
function focusTime() {
  if (!view.focus) return undefined;
  const time = sides[view.focus.side].at[view.focus.row];
  const [from, to] = rangeOf(view.current);
  return time >= from && time <= to ? time : undefined;
}

function takeKeys() {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || part('keys').open) return;
    const { target } = event;
    if (target.closest('input,select,textarea')) {
      // Not the browsers' own action, which is to empty the field.
      if (event.key === 'Escape') { event.preventDefault(); target.blur(); }
      return;
    }
    if (!part('single-keys').checked && !target.closest('canvas')) return;
    // Links and buttons keep the keys that press them.
    if (event.key === 'Enter' && !target.closest('canvas')) return;
    const found = KEYS.find(([keys]) => keys.includes(event.key));
    if (!found) return;
    event.preventDefault();
    found[3](event);
  });
}
