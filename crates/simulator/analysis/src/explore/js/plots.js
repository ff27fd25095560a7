// Plots over the same time as the lanes: how the flows and the queues stood.

const PLOTS = [
  { id: 'sequence', title: 'Sequence', unit: 'MB', of: null },
  { id: 'window', title: 'Congestion window', unit: 'kB', of: 'window', factor: 1e-3 },
  { id: 'rtt', title: 'Smoothed round-trip time', unit: 'ms', of: 'rtt', factor: 1e-6 },
  { id: 'queue', title: 'Packets at the stations', unit: 'packets', of: null },
  { id: 'rate', title: 'Goodput', unit: 'Mb/s', of: null },
];
const PLOT_HEIGHT = 108;
/** Of more frames in view than these the plot of sequence has those alone that lost something or were sent again: the line of
 * arrived bytes hides all others. */
const MOST_STROKES = 20000;

/** The curves of a plot: each with its scheme, its times and its values. Made once for each flow. */
const curves = new Map();
function curvesOf(plot, side) {
  const key = `${plot.id} ${side.number} ${view.flow}`;
  if (!curves.has(key)) curves.set(key, makeCurves(plot, side));
  return curves.get(key);
}

function makeCurves(plot, side) {
  if (plot.id === 'queue') {
    const clients = plot.id === 'queue' && side.lanes > 1;
    const ap = pointsOf(side.backlog_station, side.backlog_at, side.backlog, (station) => station === 0);
    const rest = clients ? sumOf(side.backlog_station, side.backlog_at, side.backlog, (station) => station > 0) : null;
    return [{ ...ap, name: side.stations[0] }].concat(rest ? [{ ...rest, name: 'clients', dash: [2, 3] }] : []);
  }
  const flows = view.flow ? [view.flow - 1] : side.flows.map((_, flow) => flow);
  if (plot.id === 'rate') {
    const sum = sumOf(side.point_flow, side.point_at, side.delivered, (flow) => flows.includes(flow));
    return [rateOf(sum)];
  }
  if (plot.id === 'sequence') {
    return flows.map((flow) => {
      const points = pointsOf(side.point_flow, side.point_at, side.acknowledged, (at) => at === flow);
      return { ...points, values: points.values.map((value) => value * 1e-6), name: 'acknowledged' };
    });
  }
  return flows.map((flow) => {
    const points = pointsOf(side.point_flow, side.point_at, side[plot.of], (at) => at === flow);
    return { times: points.times, values: points.values.map((value) => value * plot.factor) };
  });
}

function pointsOf(keys, times, values, is) {
  const rows = [];
  for (let row = 0; row < keys.length; row++) if (is(keys[row])) rows.push(row);
  return { times: Float64Array.from(rows, (row) => times[row]), values: Float64Array.from(rows, (row) => values[row]) };
}

/** Sums of values at the same time. */
function sumOf(keys, times, values, is) {
  const [at, sums] = [[], []];
  for (let row = 0; row < keys.length; row++) {
    if (!is(keys[row])) continue;
    if (at.length && at[at.length - 1] === times[row]) sums[sums.length - 1] += values[row];
    else { at.push(times[row]); sums.push(values[row]); }
  }
  return { times: Float64Array.from(at), values: Float64Array.from(sums) };
}

/** Megabits per second from bytes delivered so far, over a tenth of a second or the time between samples. */
function rateOf({ times, values }) {
  const between = times.length > 1 ? times[1] - times[0] : 1e9;
  const back = Math.max(1, Math.round(1e8 / between));
  const rates = values.map((value, row) => {
    const from = Math.max(0, row - back);
    return row > from ? (value - values[from]) * 8e3 / (times[row] - times[from]) : 0;
  });
  return { times, values: rates };
}

/** The schemes in the plots: all while they share a time line. */
function plotted() { return view.locked ? sides : [sides[view.current]]; }

function drawPlot(canvas, plot) {
  const last = plot === PLOTS[PLOTS.length - 1];
  const { pen, width } = penOf(canvas, PLOT_HEIGHT + (last ? AXIS : 0));
  const height = PLOT_HEIGHT;
  const range = rangeOf(view.current);
  const scale = scaleOf(range, width);
  const [top, bottom] = [8, height - 8];
  const all = plotted().map((side) => ({ side, curves: curvesOf(plot, side) }));
  const [least, most] = limits(plot, all, range);
  const y = (value) => bottom - (value - least) / (most - least) * (bottom - top);
  drawAxis(pen, range, scale, 0, height, last);
  drawValues(pen, [least, most], scale, y);
  pen.save();
  pen.beginPath();
  pen.rect(scale.left, 0, scale.right - scale.left, height);
  pen.clip();
  for (const { side, curves } of all) {
    pen.strokeStyle = pen.fillStyle = ink.sides[side.number];
    if (plot.id === 'sequence') drawSequence(pen, side, range, scale, y);
    for (const curve of curves) {
      pen.globalAlpha = curves.length > 3 ? 0.55 : 1;
      drawCurve(pen, curve, range, scale, y, curve.dash ?? (side.number ? [6, 3] : []));
    }
    pen.globalAlpha = 1;
  }
  drawCursor(pen, view.current, scale, height);
  pen.restore();
}

/** The values of the plot in `range`, from least to most. */
function limits(plot, all, range) {
  let [least, most] = [Infinity, -Infinity];
  const take = (value) => { least = Math.min(least, value); most = Math.max(most, value); };
  for (const { side, curves } of all) {
    for (const { times, values } of curves) {
      const to = Math.min(times.length, lowerBound(times, range[1]) + 1);
      for (let row = Math.max(0, lowerBound(times, range[0]) - 1); row < to; row++) take(values[row]);
    }
    if (plot.id === 'sequence') {
      const [first, last] = side.seen(...range);
      for (let i = first; i < last && last - first <= MOST_STROKES; i++) {
        if (!side.isData[i] || !inFlow(side, i)) continue;
        take(side.sequence[i] * 1e-6);
        take((side.sequence[i] + side.sequence_count[i]) * 1e-6);
      }
    }
  }
  if (!(most > -Infinity)) return [0, 1];
  if (plot.id !== 'sequence') least = 0;
  if (most - least < 1e-9) most = least + 1;
  const margin = (most - least) * 0.06;
  return [plot.id === 'sequence' ? least - margin : 0, most + margin];
}

function inFlow(side, i) { return view.flow ? side.flow[i] === view.flow : side.flow[i] > 0; }

function drawValues(pen, [least, most], scale, y) {
  const { step, all } = ticks([least, most], PLOT_HEIGHT - 16, 22);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  pen.textAlign = 'right';
  pen.fillStyle = ink.muted;
  pen.strokeStyle = ink.grid;
  pen.beginPath();
  for (const value of all) {
    const at = Math.round(y(value)) + 0.5;
    if (at < 6 || at > PLOT_HEIGHT - 4) continue;
    pen.moveTo(scale.left, at);
    pen.lineTo(scale.right, at);
    pen.fillText(digits > 4 ? value.toPrecision(7) : value.toFixed(digits), scale.left - 6, at);
  }
  pen.stroke();
  pen.textAlign = 'left';
}

function drawCurve(pen, { times, values }, range, scale, y, dash) {
  const from = Math.max(0, lowerBound(times, range[0]) - 1);
  const to = Math.min(times.length, lowerBound(times, range[1]) + 1);
  // Of many samples in a pixel the first, the least, the most and the last make the same picture.
  const crowded = (to - from) / (scale.right - scale.left) > 3;
  pen.setLineDash(dash);
  pen.lineWidth = 1.5;
  pen.beginPath();
  let pixel = null;
  let [low, high] = [0, 0];
  for (let row = from; row < to; row++) {
    const x = scale.x(times[row]);
    if (!crowded) { if (row === from) pen.moveTo(x, y(values[row])); else pen.lineTo(x, y(values[row])); continue; }
    if (Math.floor(x) !== pixel) {
      if (pixel !== null) { pen.lineTo(pixel, y(low)); pen.lineTo(pixel, y(high)); }
      pixel = Math.floor(x);
      [low, high] = [values[row], values[row]];
    }
    [low, high] = [Math.min(low, values[row]), Math.max(high, values[row])];
  }
  pen.stroke();
  pen.setLineDash([]);
  pen.lineWidth = 1;
}

/** Data as strokes as long as it was on the air, packets that acknowledge as open rings; sent again in the colour of losses. */
function drawSequence(pen, side, range, scale, y) {
  const [first, last] = side.seen(...range);
  const rings = last - first < 1500;
  const crowded = last - first > MOST_STROKES;
  let drawn = -1;
  for (let i = first; i < last; i++) {
    if (crowded && !side.lost[i] && !side.retries[i] || !inFlow(side, i)) continue;
    const x = scale.x(side.at[i]);
    if (side.isData[i]) {
      const [low, high] = [y(side.sequence[i] * 1e-6), y((side.sequence[i] + side.sequence_count[i]) * 1e-6)];
      const place = Math.round(x) * 4096 + Math.round(high);
      if (place === drawn && (crowded || !side.retries[i])) continue;
      drawn = place;
      const w = side.duration[i] * scale.each;
      if (side.retries[i] || side.lost[i]) pen.fillStyle = pen.strokeStyle = ink.lost;
      if (w < 3) pen.fillRect(x, high, 1.5, Math.max(1.5, low - high));
      else {
        pen.lineWidth = 2.5;
        pen.beginPath();
        pen.moveTo(x, low);
        pen.lineTo(x + w, high);
        pen.stroke();
        pen.lineWidth = 1;
      }
      pen.fillStyle = pen.strokeStyle = ink.sides[side.number];
    } else if (rings && side.kindOf(i) === 'tcp-ack' && side.has(i, 'acknowledges')) {
      pen.beginPath();
      pen.arc(x, y(side.acknowledges[i] * 1e-6), 2.5, 0, 7);
      pen.stroke();
    }
  }
}

/** The values under the pointer, in words. */
function readout(plot) {
  const time = view.cursor?.time ?? (view.focus ? sides[view.focus.side].at[view.focus.row] : null);
  if (time === null) return '';
  return plotted().map((side) => {
    const said = curvesOf(plot, side).slice(0, 3).map(({ times, values, name }) => {
      const row = Math.min(times.length - 1, Math.max(0, lowerBound(times, time + 1) - 1));
      const value = values[row];
      if (value === undefined) return '–';
      return `${plot.id === 'queue' ? `${name} ` : ''}${trimmed(value.toFixed(value >= 100 ? 0 : value >= 1 ? 2 : 3))}`;
    });
    return `${side.scheme}: ${said.join(', ')} ${plot.unit}`;
  }).join('  ·  ');
}

/** The value that a share of all does not exceed. */
function quantile(steps, share) {
  const total = steps.reduce((sum, [, count]) => sum + count, 0);
  let below = 0;
  return steps.find(([, count]) => (below += count) >= total * share)[0];
}

/** Cumulative shares: steps of a distribution, one curve per scheme. */
function drawShares(canvas, all, { unit, logarithmic }) {
  const { pen, width, height } = penOf(canvas, 190);
  const most = Math.max(1e-9, ...all.map(({ steps }) => steps[steps.length - 1][0]));
  // Below the value that one in two hundred undercuts there is nothing to see.
  const least = logarithmic ? Math.min(most / 10, ...all.map(({ steps }) => quantile(steps, 0.005))) : 0;
  const [left, right, top, bottom] = [44, width - 12, 8, height - 34];
  const place = (value) => logarithmic ? Math.log(Math.max(value, least) / least) / Math.log(most / least || 2) : value / most;
  const x = (value) => left + place(value) * (right - left);
  const y = (share) => bottom - share * (bottom - top);
  pen.strokeStyle = ink.grid;
  pen.fillStyle = ink.muted;
  pen.beginPath();
  pen.textAlign = 'right';
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    pen.moveTo(left, y(share)); pen.lineTo(right, y(share));
    pen.fillText(`${share * 100} %`, left - 6, y(share));
  }
  pen.textAlign = 'center';
  const marks = [];
  if (logarithmic) for (let power = Math.ceil(Math.log10(least)); power <= Math.log10(most); power++) marks.push(10 ** power);
  else marks.push(...ticks([0, most], right - left, 60).all);
  for (const mark of marks) {
    pen.moveTo(x(mark), top); pen.lineTo(x(mark), bottom + 4);
    pen.fillText(trimmed(mark.toPrecision(3)).replace('e+', 'e'), x(mark), bottom + 12);
  }
  pen.stroke();
  pen.fillText(unit, (left + right) / 2, height - 8);
  pen.textAlign = 'left';
  for (const { side, steps } of all) {
    const total = steps.reduce((sum, [, count]) => sum + count, 0);
    pen.strokeStyle = ink.sides[side.number];
    pen.lineWidth = 2;
    pen.setLineDash(side.number ? [6, 3] : []);
    pen.beginPath();
    let below = 0;
    pen.moveTo(left, y(0));
    for (const [value, count] of steps) {
      pen.lineTo(x(value), y(below / total));
      below += count;
      pen.lineTo(x(value), y(below / total));
    }
    pen.lineTo(right, y(1));
    pen.stroke();
  }
  pen.setLineDash([]);
  pen.lineWidth = 1;
}
