// Line charts by uPlot: over time, with linked cursors and zoom, and distributions, and latency against load.
"use strict";
const TIMES = DATA.time.columns.at ? chartValues(DATA.time.columns.at) : [];
const CHARTS = [];
const HEIGHT = 190;
/** The values on a logarithmic axis: all those of `decades` are written. */
const LOGARITHMIC = { splits: decades, filter: (_, splits) => splits };
const SHADED = mergedSpans(DATA.episodes);

/** Return the spans in which at least one episode lasted, without overlaps. */
function mergedSpans(episodes) {
  const merged = [];
  for (const each of [...episodes].sort((one, other) => one.begin - other.begin)) {
    const last = merged[merged.length - 1];
    if (last && each.begin <= last.end) last.end = Math.max(last.end, each.end);
    else merged.push({ begin: each.begin, end: each.end });
  }
  return merged;
}

/** Return an axis whose values are written in a unit. */
function axis(unit, more) {
  return {
    stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, size: 58, gap: 4,
    font: "12px system-ui, sans-serif", values: (_, splits) => splits.map((each) => (each === null ? "" : written(each, unit))),
    ...more,
  };
}

/** Return a function that draws the episodes as shaded spans, and the starts of stages as ticks. */
function shading(chart) {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colour("shade");
  for (const each of SHADED) {
    const left = chart.valToPos(each.begin, "x", true);
    const right = chart.valToPos(each.end, "x", true);
    ctx.fillRect(left, bbox.top, Math.max(1, right - left), bbox.height);
  }
  ctx.strokeStyle = colour("soft");
  ctx.setLineDash([2, 4]);
  ctx.beginPath();
  for (const each of DATA.starts.slice(1)) {
    const at = Math.round(chart.valToPos(each.at, "x", true)) + 0.5;
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
  }
  ctx.stroke();
  ctx.restore();
}

/** Draw the recorded limit of a latency as a line with its value. */
function drawObjective(plot, name) {
  const limit = DATA.objectives[name];
  if (!limit || limit < plot.scales.y.min || limit > plot.scales.y.max) return;
  const { ctx, bbox } = plot;
  const top = Math.round(plot.valToPos(limit, "y", true)) + 0.5;
  ctx.save();
  ctx.strokeStyle = colour("ink");
  ctx.fillStyle = colour("ink");
  ctx.setLineDash([1, 3]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, top);
  ctx.lineTo(bbox.left + bbox.width, top);
  ctx.stroke();
  ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  ctx.fillText(`limit ${written(limit, "seconds")}`, bbox.left + 4 * devicePixelRatio, top - 2);
  ctx.restore();
}

/** Return a text of the legend while the cursor is on the chart, else nothing. */
function hovered(plot, text) {
  return plot.cursor.idx === null || plot.cursor.idx === undefined ? "" : text;
}

function lineOf(line, unit) {
  return {
    label: line.label, scale: line.right ? "right" : "y", stroke: colour(`c${line.colour}`), width: 1.5,
    dash: line.dash, points: { show: false }, value: (plot, value) => hovered(plot, written(value, unit)), spanGaps: false,
  };
}

function edgeOf(line, end) {
  return { label: `${line.label} ${end}`, scale: "y", stroke: "transparent", width: 0, points: { show: false }, class: "edge" };
}

/** Return the options and the data of a chart over time. */
function timeChart(chart, width) {
  const columns = DATA.time.columns;
  const series = [{ label: "time", value: (plot, value) => hovered(plot, value === null ? "–" : clock(value)) }];
  const data = [TIMES];
  const bands = [];
  for (const line of chart.lines) {
    series.push(lineOf(line, line.right ? chart.rightUnit : chart.unit));
    data.push(chartValues(columns[line.column]));
  }
  for (const line of chart.lines.filter((each) => each.band && columns[`${each.column}_high`])) {
    series.push(edgeOf(line, "highest"), edgeOf(line, "lowest"));
    data.push(chartValues(columns[`${line.column}_high`]), chartValues(columns[`${line.column}_low`]));
    bands.push({ series: [data.length - 2, data.length - 1], fill: `${colour(`c${line.colour}`)}33` });
  }
  const axes = [axis("count", { values: (_, splits) => splits.map(clock), size: 28, space: 70 }), chart.logarithmic ? axis(chart.unit, LOGARITHMIC) : axis(chart.unit)];
  if (chart.rightUnit) axes.push(axis(chart.rightUnit, { scale: "right", side: 1, grid: { show: false } }));
  const range = (_, low, high) => (chart.unit === "share" && !(high > 1) ? [0, 1] : [0, high > 0 ? high * 1.05 : 1]);
  return [{
    width, height: HEIGHT, series, axes, bands, focus: { alpha: 1 },
    scales: { x: { time: false }, y: chart.logarithmic ? { distr: 3, range: around } : { range }, right: { range: (_, low, high) => [0, Math.max(high * 1.05, 1)] } },
    cursor: { sync: { key: "time", setSeries: false }, drag: { x: true, y: false }, points: { size: 6 } },
    legend: { markers: { width: 2, dash: (plot, i) => borderOf(plot.series[i].dash) } },
    hooks: { drawClear: [shading], draw: [(plot) => drawObjective(plot, chart.name)], setCursor: [(plot) => moveHeatCursor(plot)], setScale: [(plot, key) => key === "x" && zoomHeatMap(plot)] },
  }, data];
}

/** Return a range of a logarithmic axis that holds all values. */
function around(_, low, high) {
  if (!(low > 0)) return [0.001, 1];
  return [low / 1.15, high * 1.15];
}

/** Return 1, 2 and 5 times the powers of ten of a logarithmic axis: without 2 and 5 over many decades, evenly spaced within one. */
function decades(plot, _, low, high) {
  if (high / low < 5) return evenly(low, high);
  const steps = Math.log10(high / low) > 2.2 ? [1] : [1, 2, 5];
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const step of steps) if (step * 10 ** power >= low && step * 10 ** power <= high) found.push(step * 10 ** power);
  }
  return found;
}

/** Return a few round values between two. */
function evenly(low, high) {
  const least = (high - low) / 6;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least * (1 - 1e-9));
  const found = [];
  for (let count = Math.ceil(low / step); count * step <= high; count += 1) found.push(count * step);
  return found;
}

/** Return the options and the data of a chart of distributions: the share at or below each latency. */
function distributionChart(chart, width) {
  const tables = chart.lines.map((line) => [chartValues(line.column), chartValues(chart.shares).map((share) => share / 100)]);
  for (const table of tables) keepRising(table);
  const series = [{ label: "latency", value: (plot, value) => hovered(plot, written(value, "seconds")) }];
  for (const line of chart.lines) series.push({ ...lineOf({ ...line, label: `${line.label} ≤` }, "share"), spanGaps: true });
  return [{
    width, height: HEIGHT, series, axes: [axis("seconds", { size: 28, space: 60, splits: decades }), axis("share")],
    scales: { x: { time: false, distr: 3, range: around }, y: { range: [0, 1] } }, cursor: { drag: { x: true, y: false } },
    legend: { markers: { width: 2, dash: (plot, i) => borderOf(plot.series[i].dash) } },
  }, uPlot.join(tables)];
}

/** Remove points at which the latency does not rise, since an axis needs rising values; the highest share stays. */
function keepRising(table) {
  const kept = [[], []];
  table[0].forEach((value, i) => {
    if (!(value > 0)) return;
    const last = kept[0].length - 1;
    if (last >= 0 && value <= kept[0][last]) kept[1][last] = table[1][i];
    else { kept[0].push(value); kept[1].push(table[1][i]); }
  });
  [table[0], table[1]] = kept;
}

/** Return latencies against throughput, one point for each stage: filled for p99, hollow for p50; of a sweep lines of points. */
function loadChart(chart, width) {
  const lists = chart.series.map((each) => [...each.points].sort((one, other) => one[0] - other[0]));
  const names = new Map(lists.flat().map(([x, , label]) => [x, label]));
  const load = (value) => (chart.across ? `${written(value, "rate")} ${chart.across}` : `${written(value, "rate")} req/s (${names.get(value)})`);
  const series = [{ label: chart.across ? "load" : "completed", value: (plot, value) => hovered(plot, names.has(value) ? load(value) : "–") }];
  for (const each of chart.series) {
    const fill = colour(each.filled ? `c${each.colour}` : "ground");
    series.push({
      label: each.label, stroke: colour(`c${each.colour}`), fill: each.dash ? undefined : fill, width: 1.5, dash: each.dash, spanGaps: true,
      paths: each.dash ? uPlot.paths.linear() : () => null, points: { show: true, size: each.size, fill, width: 2 },
      value: (plot, value) => hovered(plot, written(value, "seconds")),
    });
  }
  const xRange = (_, low, high) => [Math.max(0, low - (high - low) * 0.06), high + (high - low) * 0.06];
  return [{
    width, height: HEIGHT, series, axes: [axis("rate", { size: 28 }), axis("seconds", LOGARITHMIC)],
    scales: { x: { time: false, range: xRange }, y: { distr: 3, range: around } }, cursor: { drag: { x: true, y: false } },
    legend: { markers: { width: 2, fill: (plot, i) => (plot.series[i].dash ? "transparent" : plot.series[i].points.fill(plot, i)), dash: (plot, i) => borderOf(plot.series[i].dash) } },
  }, uPlot.join(lists.map((points) => [points.map(([x]) => x), points.map(([, y]) => y)]))];
}

/** Return the border of a line's mark in the legend. */
function borderOf(dash) {
  if (!dash || !dash.length) return "solid";
  return dash.length > 2 ? "double" : dash[0] > dash[1] ? "dashed" : "dotted";
}

/** Add a figure with a chart; `build` returns its options and data for a width. */
function addChart(place, title, build) {
  const box = make("div", {});
  const figure = make("figure", { tabindex: "0", role: "group", "aria-label": `${title}, chart` }, make("h3", {}, title), box);
  place.append(figure);
  const state = { figure, box, build, plot: null };
  CHARTS.push(state);
  figure.addEventListener("keydown", (event) => chartKey(state, event));
  drawChart(state);
}

/** Draw a chart for the width of its place and the current colours. */
function drawChart(state) {
  const [options, data] = state.build(Math.max(260, state.box.clientWidth));
  if (state.plot) state.plot.destroy();
  state.plot = new uPlot(options, data, state.box);
  for (const name of state.box.querySelectorAll(".u-legend tr:not(:first-child) th")) {
    name.tabIndex = 0;
    name.setAttribute("role", "button");
    name.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); name.click(); } });
  }
}

/** Move the cursor of a focused chart with the arrow keys; Escape zooms out. */
function chartKey(state, event) {
  const { plot } = state;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.key === "Escape") zoomOut();
  if (!step) return;
  event.preventDefault();
  const at = plot.cursor.idx === null || plot.cursor.idx === undefined ? (step > 0 ? -1 : plot.data[0].length) : plot.cursor.idx;
  const next = Math.min(plot.data[0].length - 1, Math.max(0, at + step));
  const linked = plot.cursor.sync.key === "time" ? CHARTS.map((each) => each.plot).filter((each) => each.cursor.sync.key === "time") : [plot];
  for (const each of linked) each.setCursor({ left: each.valToPos(each.data[0][next], "x"), top: each.over.clientHeight / 2 });
}

/** Show the whole run in all charts. */
function zoomOut() {
  for (const { plot } of CHARTS) plot.setScale("x", { min: plot.data[0][0], max: plot.data[0][plot.data[0].length - 1] });
}
