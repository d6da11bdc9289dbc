// The charts of a search: what each load showed of each objective, and the interval of the answer over time.
"use strict";
const VERDICTS = { kept: "good", missed: "bad" };
const LOWEST_SHARE = 10;
const HIGHEST_MEAN = 10;

/** Add a chart for each objective, that of the answer first, and one over time. */
function addSearch(place) {
  const found = DATA.search;
  if (!place || !found) return;
  const order = found.objectives.map((_, i) => i).sort((one, other) => (other === found.binding) - (one === found.binding));
  for (const i of order) {
    const points = searchedPoints(found, i);
    const { label, meanLimit } = found.objectives[i];
    if (points.length) addChart(place, `${label}: ${meanLimit === null ? "share that missed" : "mean"} at each load`, (width) => objectiveChart(found, i, points, width));
  }
  found.slo.forEach((text, i) => addChart(place, `Interval over time: ${text}`, (width) => intervalChart(found, i, width)));
}

/** Return the loads that have samples of an objective, in order of the load. */
function searchedPoints(found, objective) {
  return found.loads.filter((each) => each.figures[objective]).map((each) => ({ load: each.load, begin: each.begin, ...each.figures[objective] }))
    .sort((one, other) => one.load - other.load);
}

/** Return the interval of the first answer at the end of the search; its unknown ends are null. */
function lastInterval(found) {
  return found.states[found.states.length - 1].answers[0] || { low: null, high: null };
}

/** Return the chart of an objective: both axes are logarithmic, figures below a tenth of what is allowed are at the bottom. */
function objectiveChart(found, objective, points, width) {
  const { allowed, meanLimit } = found.objectives[objective];
  const limit = meanLimit === null ? allowed : meanLimit;
  const unit = meanLimit === null ? "share" : "seconds";
  const range = [limit / LOWEST_SHARE, meanLimit === null ? 1.15 : limit * HIGHEST_MEAN];
  const within = (value) => Math.min(range[1], Math.max(range[0], value));
  const text = (plot, i) => {
    const point = points[i];
    if (!point) return "–";
    const high = point.high === null ? "∞" : written(point.high, unit);
    return hovered(plot, `${written(point.value, unit)} [${written(point.low, unit)}, ${high}] of ${threeDigits(point.counted)}, ${point.verdict}`);
  };
  const series = [
    { label: found.unit, value: (plot, value, _, i) => hovered(plot, value === null ? "–" : `${threeDigits(value)} from ${clock(points[i].begin)}`) },
    { label: meanLimit === null ? "missed" : "mean", stroke: colour("ink"), paths: () => null, points: { show: false }, value: (plot, _, __, i) => (i === null || i === undefined ? "" : text(plot, i)) },
  ];
  return [{
    width, height: HEIGHT, series, axes: [axis("rate", { size: 28, space: 50, splits: decades }), axis(unit, { splits: decades })],
    scales: { x: { time: false, distr: 3, range: around }, y: { distr: 3, range: () => range } },
    cursor: { drag: { x: true, y: false }, points: { show: false } }, legend: { markers: { show: false } },
    hooks: {
      drawClear: [(plot) => shadeAnswer(plot, lastInterval(found))],
      draw: [(plot) => { drawAllowed(plot, limit, unit); for (const point of points) drawFigure(plot, point, within); }],
    },
  }, [points.map((each) => each.load), points.map((each) => within(each.value))]];
}

/** Draw within the chart, without the dashes and alignment of what was drawn before. */
function clipped(plot, draw) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top - 6, bbox.width, bbox.height + 12);
  ctx.clip();
  ctx.setLineDash([]);
  ctx.textAlign = "left";
  draw(ctx, bbox);
  ctx.restore();
}

/** Shade the interval of the answer; an end that is not known is that of the chart. */
function shadeAnswer(plot, { low, high }) {
  if (low === null && high === null) return;
  clipped(plot, (ctx, bbox) => {
    const left = low === null ? bbox.left : plot.valToPos(low, "x", true);
    const right = high === null ? bbox.left + bbox.width : plot.valToPos(high, "x", true);
    ctx.fillStyle = colour("shade");
    ctx.fillRect(left, bbox.top, Math.max(1, right - left), bbox.height);
  });
}

/** Draw what is allowed as a dashed line with its value. */
function drawAllowed(plot, limit, unit) {
  clipped(plot, (ctx, bbox) => {
    const top = Math.round(plot.valToPos(limit, "y", true)) + 0.5;
    ctx.strokeStyle = colour("ink");
    ctx.fillStyle = colour("ink");
    ctx.setLineDash([5, 4]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, top);
    ctx.lineTo(bbox.left + bbox.width, top);
    ctx.stroke();
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textBaseline = "bottom";
    ctx.fillText(`allowed ${written(limit, unit)}`, bbox.left + 4 * devicePixelRatio, top - 2);
  });
}

/** Draw the interval of a load, and its mark: a disc if the limit is kept, a cross if it is missed, else a ring. */
function drawFigure(plot, point, within) {
  clipped(plot, (ctx) => {
    const x = Math.round(plot.valToPos(point.load, "x", true)) + 0.5;
    const [low, middle, high] = [point.low, point.value, point.high === null ? Infinity : point.high].map((each) => plot.valToPos(within(each), "y", true));
    const size = 4.5 * devicePixelRatio;
    ctx.strokeStyle = colour(VERDICTS[point.verdict] || "soft");
    ctx.fillStyle = point.verdict === "kept" ? ctx.strokeStyle : colour("ground");
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, low);
    ctx.lineTo(x, high);
    ctx.stroke();
    ctx.beginPath();
    if (point.verdict === "missed") {
      for (const side of [1, -1]) { ctx.moveTo(x - size, middle - side * size); ctx.lineTo(x + size, middle + side * size); }
    } else {
      ctx.arc(x, middle, size, 0, 2 * Math.PI);
      ctx.fill();
    }
    ctx.stroke();
  });
}

/** Return the chart of both ends of an answer over time, and of the loads that were kept. */
function intervalChart(found, answer, width) {
  const states = found.states.filter((each) => each.answers[answer]);
  const ends = (name) => states.map((each) => each.answers[answer][name]);
  const series = [
    { label: "time", value: (plot, value) => hovered(plot, value === null ? "–" : clock(value)) },
    ...["high", "low"].map((name, i) => ({
      ...lineOf({ label: `${name === "high" ? "at most" : "at least"}, ${found.unit}`, colour: i, dash: i === 1 ? [6, 3] : [] }, "rate"),
      paths: uPlot.paths.stepped({ align: 1 }),
    })),
  ];
  const loads = found.loads.map((each) => each.load);
  const range = () => {
    const values = [...ends("low"), ...ends("high"), ...loads].filter((each) => each > 0);
    return [Math.min(...values) / 1.15, Math.max(...values) * 1.15];
  };
  const first = Math.min(...found.loads.map((each) => each.begin), states[0].at);
  return [{
    width, height: HEIGHT, series, bands: [{ series: [1, 2], fill: colour("shade") }],
    axes: [axis("count", { values: (_, splits) => splits.map(clock), size: 28, space: 70 }), axis("rate", { splits: decades })],
    scales: { x: { time: false, range: (_, low, high) => [Math.min(first, low), high] }, y: { distr: 3, range } },
    cursor: { drag: { x: true, y: false } }, legend: { markers: { width: 2, dash: (plot, i) => borderOf(plot.series[i].dash) } },
    hooks: { draw: [(plot) => drawLoads(plot, found.loads)] },
  }, [states.map((each) => each.at), ends("high"), ends("low")]];
}

/** Draw each load as a line for as long as it was kept. */
function drawLoads(plot, loads) {
  clipped(plot, (ctx) => {
    ctx.strokeStyle = colour("ink");
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.beginPath();
    for (const each of loads) {
      const y = Math.round(plot.valToPos(each.load, "y", true)) + 0.5;
      ctx.moveTo(plot.valToPos(each.begin, "x", true), y);
      ctx.lineTo(plot.valToPos(each.end, "x", true), y);
    }
    ctx.stroke();
  });
}
