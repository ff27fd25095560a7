// The page: its parts, and drawing them when something changed.

const parts = {};
function part(name) { return parts[name]; }

/** An element with attributes and children; text stays text, markup in it included. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'name') parts[value] = element;
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

function listOf(pairs) {
  const list = make('dl', { class: 'fields' });
  for (const [name, value] of pairs) list.append(make('div', {}, make('dt', {}, name), make('dd', {}, String(value))));
  return list;
}

function button(text, title, press, extra = {}) {
  return make('button', { type: 'button', title, 'aria-label': title, onclick: press, ...extra }, text);
}

function toolbar() {
  const flows = make('select', { name: 'flow', id: 'flow', onchange: (event) => { view.flow = Number(event.target.value); redraw(); } });
  flows.append(make('option', { value: 0 }, 'all flows'));
  sides[0].flows.forEach(({ name }, flow) => flows.append(make('option', { value: flow + 1 }, `${flow + 1}: ${name}`)));
  return make('div', { class: 'tools', role: 'toolbar', 'aria-label': 'Time line' },
    make('span', { class: 'group' },
      button('All', 'Show everything (0)', () => show(view.current, ...wholeRange())),
      button('−', 'Zoom out (-)', () => zoom(view.current, 2, focusTime())),
      button('+', 'Zoom in (+)', () => zoom(view.current, 0.5, focusTime())),
      button('Box', 'Draw a box to zoom to (b)', () => setBoxing(!view.boxing), { name: 'box', 'aria-pressed': 'false' })),
    make('span', { class: 'group' },
      button('◀ Frame', 'Frame before ([)', () => step(-1)),
      button('Frame ▶', 'Next frame (])', () => step(1)),
      button('Close up', 'Zoom to the frame (z)', () => { if (!view.focus) step(1); if (view.focus) pick(view.focus.side, view.focus.row, true); })),
    sides.length > 1 ? button('One time', 'One time for both schemes (l)', () => setLocked(!view.locked), { name: 'lock', 'aria-pressed': 'true' }) : null,
    make('label', {}, 'Plots of ', flows),
    make('span', { class: 'group' },
      button('Theme', 'Light or dark (t)', switchTheme, { name: 'theme' }),
      button('Keys', 'List the keys (?)', () => part('keys').showModal())));
}

function searchRow() {
  return make('form', { class: 'search', role: 'search', onsubmit: (event) => { event.preventDefault(); stepFound(1); } },
    make('label', { for: 'query' }, 'Search'),
    make('input', { name: 'query', id: 'query', type: 'search', autocomplete: 'off', spellcheck: 'false', 'aria-describedby': 'found',
      placeholder: 'kind:block-ack hack', oninput: soon((event) => search(event.target.value)) }),
    button('▲', 'Found before (N)', () => stepFound(-1)),
    button('▼', 'Next found (n)', () => stepFound(1)),
    make('details', { class: 'hint' }, make('summary', {}, 'Words'), make('p', {}, WORDS)),
    make('output', { name: 'found', id: 'found', for: 'query' }));
}

/** `work`, once nothing more came for a moment. */
function soon(work) {
  let timer = 0;
  return (event) => { clearTimeout(timer); timer = setTimeout(() => work(event), 120); };
}

function legend() {
  const list = make('ul', { class: 'legend' });
  const item = (css, kind, word) => {
    const swatch = make('span', { class: `swatch ${kind ?? ''}`, 'aria-hidden': 'true' });
    if (css) swatch.style.backgroundColor = `var(${css})`;
    list.append(make('li', {}, swatch, word));
  };
  for (const { name, word, pattern } of CLASSES) {
    const seen = sides.some((side) => side.spent[CLASSES.findIndex((other) => other.name === name)][side.count] > 0);
    if (seen) item(USE_CSS[name], pattern, word);
  }
  item(null, 'lost', 'MPDU lost');
  item(null, 'again', 'some MPDUs sent again');
  item(null, 'wait', 'AIFS, backoff');
  item(null, 'nav', 'NAV');
  item(null, 'match', 'found');
  const several = Math.max(...sides.map((side) => side.links));
  for (let link = 0; several > 1 && link < several; link++) item(USE_CSS[CLASSES[LINK_CLASSES[link]].name], null, `link ${link + 1} in the window`);
  if (several > 1) item('--lost', 'nav', 'held in the reorder buffer');
  if (sides.some((side) => side.transition_ns.some((time) => time))) item(null, 'wait', 'one radio: elsewhere, darker while it returns to listening');
  return list;
}

function keysDialog() {
  const list = make('dl', { class: 'fields' });
  for (const [, shown, what] of KEYS) list.append(make('div', {}, make('dt', {}, make('kbd', {}, shown)), make('dd', {}, what)));
  return make('dialog', { name: 'keys', 'aria-label': 'Keys' },
    make('h2', {}, 'Keys'), list,
    make('p', {}, 'A wheel or two fingers zoom, dragging moves, a click picks a frame out.'),
    make('label', {}, make('input', { type: 'checkbox', name: 'single-keys', checked: true }), ' single keys work wherever the focus is, not on a time line alone'),
    make('p', {}, button('Close', 'Close', () => part('keys').close())));
}

function build(app) {
  const stage = make('section', { class: 'stage', 'aria-label': 'Time lines' }, toolbar(), searchRow(),
    make('p', { name: 'live', class: 'status', 'aria-live': 'polite' }, 'No frame picked out: click one, or press ].'),
    make('canvas', { name: 'overview', class: 'overview', role: 'img', 'aria-label': 'The whole run; the frame in it is the part shown below' }));
  for (const side of sides) {
    const name = make('h2', { class: 'scheme', id: `scheme-${side.number}` }, make('span', { class: 'line', 'aria-hidden': 'true' }), side.scheme,
      make('small', {}, ` ${(side.goodput_bps / 1e6).toFixed(2)} Mb/s, ${plural(side.count, 'frame')}`));
    name.firstChild.style.borderTop = `3px ${side.number ? 'dashed' : 'solid'} ${side.ink}`;
    const canvas = make('canvas', { name: `lanes-${side.number}`, class: 'lanes', tabindex: 0, role: 'application',
      'aria-labelledby': `scheme-${side.number}`, 'aria-describedby': 'how',
      onfocus: () => { view.current = side.number; redraw(); } });
    stage.append(name, make('div', { class: 'lanes-box' }, canvas));
    if (side.links > 1) stage.append(make('canvas', { name: `window-${side.number}`, role: 'img', 'aria-label': 'The common Block Ack window over time' }));
  }
  stage.append(legend(),
    make('p', { id: 'how', class: 'note' }, 'Arrow keys move, plus and minus zoom, square brackets go from frame to frame, a slash searches. ? lists all keys.'),
    make('section', { class: 'picked', 'aria-label': 'Frame picked out' }, make('h2', {}, 'Frame picked out'),
      make('div', { name: 'picked' }, make('p', { class: 'note' }, 'None: click one, or press ].'))));
  const plots = make('section', { 'aria-label': 'Plots' }, make('h2', {}, 'Over the same time'));
  for (const plot of PLOTS) {
    plots.append(make('figure', { class: 'plot' },
      make('figcaption', {}, make('span', {}, `${plot.title}, ${plot.unit}`), make('span', { name: `read-${plot.id}`, class: 'read' })),
      make('canvas', { name: `plot-${plot.id}`, role: 'img', 'aria-label': `${plot.title} over time` })));
  }
  plots.append(make('p', { class: 'note' }, 'Of sequence: strokes are data on the air, first to last byte, in the colour of losses where some of it was lost or sent again; rings are pure ACKs on the air; the line is the bytes that the sender knows to have arrived.'));
  app.append(stage, plots, sharesSection(), sharesCurves(), keysDialog(), make('div', { name: 'tip', class: 'tip', hidden: true, 'aria-hidden': 'true' }));
}

function sharesSection() {
  const list = make('ul', { class: 'legend' });
  for (const [use, word] of known.uses) {
    const swatch = make('span', { class: 'swatch', 'aria-hidden': 'true' });
    swatch.style.backgroundColor = `var(${USE_CSS[use]})`;
    list.append(make('li', {}, swatch, word));
  }
  return make('section', { 'aria-label': 'Airtime' }, make('h2', {}, 'Where the time goes'), list,
    make('div', { class: 'two' },
      make('div', { name: 'measured' }, make('h3', {}, 'In the measured window')),
      make('div', {}, make('h3', {}, 'In view'), make('div', { name: 'seen' }))),
    make('p', { class: 'note' }, 'In the measured window acquisition is waiting with something to send, and SIFS counts with the link ACK behind it. In view every moment without a frame is one part.'),
    make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Counts' }, make('table', { name: 'counts' })));
}

function sharesCurves() {
  const waits = sides.map((side) => ({ side, steps: waitsOf(side) })).filter(({ steps }) => steps.length);
  const ends = sides.map((side) => ({ side, steps: side.completions_s.map((time) => [time, 1]) })).filter(({ steps }) => steps.length);
  const figures = make('div', { class: 'two' });
  const add = (title, name, all) => {
    if (!all.length) return;
    const half = ({ side, steps }) => `${side.scheme} half within ${trimmed(quantile(steps, 0.5).toPrecision(3))}`;
    figures.append(make('figure', {}, make('figcaption', {}, title),
      make('canvas', { name, role: 'img', 'aria-label': `${title}: ${all.map(half).join(', ')}` })));
  };
  add('Packets that waited no longer, at the busiest station', 'cdf-waits', waits);
  add('Flows and pages that took no longer', 'cdf-ends', ends);
  drawCurves = () => {
    if (part('cdf-waits')) drawShares(part('cdf-waits'), waits, { unit: 'wait before the first transmission, ms', logarithmic: true });
    if (part('cdf-ends')) drawShares(part('cdf-ends'), ends, { unit: 'completion time, s', logarithmic: false });
  };
  return make('section', { 'aria-label': 'Distributions' }, make('h2', {}, 'Delays'), figures);
}
let drawCurves = () => {};

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; drawAll(); });
}
const fillSoon = soon(() => fillSeen(part('seen'), part('counts')));
function drawAll() {
  // A page without width, as in a hidden frame, is drawn once it gets some.
  if (scaleOf([0, 1], part('overview').clientWidth).each <= 0) return;
  drawOverview(part('overview'));
  sides.forEach((side, number) => {
    drawLanes(part(`lanes-${number}`), number);
    if (side.links > 1) drawWindow(part(`window-${number}`), number);
  });
  for (const plot of PLOTS) {
    drawPlot(part(`plot-${plot.id}`), plot);
    part(`read-${plot.id}`).textContent = readout(plot);
  }
  fillSoon();
}

function tellFocus() {
  const { focus } = view;
  if (!focus) {
    part('picked').replaceChildren(make('p', { class: 'note' }, 'None: click one, or press ].'));
    part('live').textContent = 'No frame picked out: click one, or press ].';
    return;
  }
  part('picked').replaceChildren(listOf(fields(sides[focus.side], focus.row)));
  part('live').textContent = sentence(sides[focus.side], focus.row);
}

function tellFound(error) {
  const count = view.found?.reduce((sum, rows) => sum + rows.length, 0);
  const at = view.foundAt == null ? '' : `${grouped(view.foundAt + 1)} of `;
  part('found').textContent = error ?? (count == null ? '' : count ? `${at}${plural(count, 'frame')}` : 'no frame fits');
  part('found').classList.toggle('error', Boolean(error));
}

function setBoxing(on) {
  view.boxing = on;
  part('box').setAttribute('aria-pressed', on);
  document.body.classList.toggle('boxing', on);
}
function setLocked(on) {
  if (sides.length < 2) return;
  view.locked = on;
  part('lock').setAttribute('aria-pressed', on);
  show(view.current, ...rangeOf(view.current));
}
function switchSide() {
  view.current = (view.current + 1) % sides.length;
  part(`lanes-${view.current}`).focus();
  redraw();
}
function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  readTheme();
  redraw();
  drawCurves();
}

async function start() {
  const app = document.getElementById('app');
  for (const [number, about] of known.sides.entries()) sides.push(new Side(number, about, await inflated(number)));
  view.ranges = sides.map(wholeRange);
  build(app);
  app.hidden = false;
  readTheme();
  sides.forEach((_, number) => takePointers(part(`lanes-${number}`), () => number, { picks: true }));
  for (const side of sides) if (side.links > 1) takePointers(part(`window-${side.number}`), () => side.number);
  for (const plot of PLOTS) takePointers(part(`plot-${plot.id}`), () => view.current);
  takeOverview(part('overview'));
  takeKeys();
  fillMeasured(part('measured'));
  addEventListener('resize', () => { redraw(); drawCurves(); });
  addEventListener('beforeprint', drawAll);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { readTheme(); redraw(); drawCurves(); });
  drawAll();
  drawCurves();
  document.documentElement.dataset.ready = '';
}

start().catch((error) => {
  const app = document.getElementById('app');
  app.hidden = false;
  app.append(make('p', { class: 'error', role: 'alert' }, `The time line cannot be drawn: ${error.message ?? error}. The numbers stand below.`));
});
