// Uses of the time: bars and a table, of the measured window and of the view.

/** Shares of the view, by class, and of the time that is on no frame. */
function sharesSeen(side) {
  const [from, to] = rangeOf(side.number);
  const shares = side.timeIn(from, to).map((time) => time / (to - from));
  return [...shares, Math.max(0, 1 - shares.reduce((sum, share) => sum + share, 0))];
}

function bar(parts) {
  const bar = make('div', { class: 'bar' });
  for (const { word, share, css, pattern } of parts) {
    if (share <= 0) continue;
    const part = make('span', { title: `${word}: ${(share * 100).toFixed(1)} %`, class: pattern ? `part ${pattern}` : 'part' });
    part.style.width = `${share * 100}%`;
    part.style.background = css;
    bar.append(part);
  }
  const told = parts.filter(({ share }) => share >= 0.0005).map(({ word, share }) => `${word} ${(share * 100).toFixed(1)} %`);
  bar.setAttribute('role', 'img');
  bar.setAttribute('aria-label', told.join(', '));
  return bar;
}

const USE_CSS = {
  data: '--air-data', tcp_ack: '--air-tcp-ack', retransmission: '--air-retransmission', link_ack: '--air-link-ack',
  protection: '--air-protection', compressed_ack: '--air-compressed-ack', acquisition: '--air-acquisition',
  collision: '--air-collision', beacon: '--air-beacon', idle: '--air-idle',
};

/** Bars of the measured window: they stay. */
function fillMeasured(into) {
  for (const side of sides) {
    const parts = side.airtime.map(([name, share]) => (
      { word: known.uses.find(([use]) => use === name)[1], share, css: `var(${USE_CSS[name]})` }));
    into.append(make('p', { class: 'bar-name' }, side.scheme), bar(parts));
  }
}

/** Bars and counts of the view. */
function fillSeen(bars, table) {
  bars.replaceChildren();
  for (const side of sides) {
    const shares = sharesSeen(side);
    const parts = CLASSES.map(({ name, word }, what) => ({ word, share: shares[what], css: `var(${USE_CSS[name]})` }));
    parts.push({ word: 'nothing on the air', share: shares[CLASSES.length], css: 'var(--air-acquisition)' });
    bars.append(make('p', { class: 'bar-name' }, side.scheme), bar(parts));
  }
  const head = make('tr', {}, make('th', { class: 'name', scope: 'col' }, 'in view'));
  for (const side of sides) head.append(make('th', { scope: 'col' }, side.scheme));
  const body = make('tbody');
  const row = (name, of) => {
    const line = make('tr', {}, make('th', { class: 'name', scope: 'row' }, name));
    for (const side of sides) line.append(make('td', {}, of(side)));
    body.append(line);
  };
  row('stretch of time', (side) => span(rangeOf(side.number)[1] - rangeOf(side.number)[0]));
  for (const name of Object.keys(COUNTS)) {
    row(name, (side) => grouped(side.countIn(name, ...rangeOf(side.number))));
  }
  const shares = sides.map(sharesSeen);
  CLASSES.concat({ word: 'nothing on the air' }).forEach(({ word }, what) => {
    if (shares.some((all) => all[what] > 0)) row(`airtime: ${word}`, (side) => `${(shares[side.number][what] * 100).toFixed(1)} %`);
  });
  table.replaceChildren(make('thead', {}, head), body);
}

/** Waits of the station that most packets waited at. */
function waitsOf(side) {
  const packets = (waits) => waits.reduce((sum, [, count]) => sum + count, 0);
  const busiest = side.waits_us.reduce((best, waits) => packets(waits) > packets(best) ? waits : best, []);
  return busiest.map(([us, count]) => [Math.max(us, 1) / 1e3, count]);
}
