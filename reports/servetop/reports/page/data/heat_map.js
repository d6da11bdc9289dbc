// A heat map of a latency over time, on a canvas; its cursor and zoom are those of the charts over time.
"use strict";
const HEAT = { metric: null, view: null, canvas: null, read: null, key: null, at: null, cell: null };
const LEFT = 58;
const BOTTOM = 28;

function heatData(metric) {
  const found = DATA.heat[metric];
  if (!found.values) found.values = { times: unpacked(found.times), heights: unpacked(found.heights), counts: unpacked(found.counts) };
  return found.values;
}

/** Add the heat map, with a button for each latency. */
function addHeatMap(place) {
  const metrics = Object.keys(DATA.heat);
  if (!metrics.length) return;
  HEAT.metric = metrics[0];
  HEAT.canvas = make("canvas", { role: "img", "aria-label": "Heat map: how many requests had which latency, by the time they were sent" });
  HEAT.read = make("div", { class: "read", "aria-live": "polite" });
  HEAT.key = make("span", { class: "key" });
  const buttons = metrics.map((metric) => {
    const button = make("button", { type: "button", "aria-pressed": String(metric === HEAT.metric) }, metric.toUpperCase());
    button.addEventListener("click", () => {
      HEAT.metric = metric;
      HEAT.cell = null;
      HEAT.read.textContent = "";
      buttons.forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
      drawHeatMap();
    });
    return button;
  });
  const title = "Requests by latency and time sent";
  const figure = make("figure", { tabindex: "0", role: "group", "aria-label": `${title}, chart` }, make("h3", {}, title), make("div", { class: "choice" }, ...buttons, HEAT.key), HEAT.canvas, HEAT.read);
  place.append(figure);
  figure.addEventListener("keydown", heatKey);
  HEAT.canvas.addEventListener("mousemove", (event) => readHeatMap(event));
  HEAT.canvas.addEventListener("mouseleave", () => { HEAT.read.textContent = ""; });
  drawHeatMap();
}

/** Return the parts of the canvas: its size in CSS pixels, and how times and latencies become positions. */
function heatLayout() {
  const { times, heights } = heatData(HEAT.metric);
  const width = Math.max(260, HEAT.canvas.parentElement.clientWidth);
  const height = HEIGHT;
  const [start, end] = HEAT.view || (TIMES.length > 1 ? [TIMES[0], TIMES[TIMES.length - 1]] : [times[0], times[times.length - 1]]);
  const low = Math.log(heights[0]);
  const high = Math.log(heights[heights.length - 1]);
  return {
    width, height, start, end,
    x: (time) => LEFT + ((time - start) / (end - start)) * (width - LEFT),
    y: (seconds) => (height - BOTTOM) * (1 - (Math.log(seconds) - low) / (high - low)),
  };
}

/** Draw the counts; darker, or in the dark brighter, is more requests. */
function drawHeatMap() {
  if (!HEAT.canvas) return;
  const { times, heights, counts } = heatData(HEAT.metric);
  const layout = heatLayout();
  const ratio = window.devicePixelRatio || 1;
  HEAT.canvas.width = layout.width * ratio;
  HEAT.canvas.height = layout.height * ratio;
  HEAT.canvas.style.width = `${layout.width}px`;
  const ctx = HEAT.canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  const columns = times.length - 1;
  const most = counts.reduce((one, other) => Math.max(one, other), 1);
  HEAT.key.textContent = `■ ${requestsText(most)}, paler: fewer`;
  ctx.save();
  ctx.beginPath();
  ctx.rect(LEFT, 0, layout.width - LEFT, layout.height - BOTTOM);
  ctx.clip();
  ctx.fillStyle = colour("c0");
  for (let row = 0; row < heights.length - 1; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const count = counts[row * columns + column];
      if (!count) continue;
      ctx.globalAlpha = 0.18 + 0.82 * (Math.log1p(count) / Math.log1p(most));
      const left = layout.x(times[column]);
      const top = layout.y(heights[row + 1]);
      ctx.fillRect(left, top, Math.max(1, layout.x(times[column + 1]) - left - 0.5), Math.max(1, layout.y(heights[row]) - top - 0.5));
    }
  }
  ctx.restore();
  heatAxes(ctx, layout, heights);
  if (HEAT.cell) {
    const [column, row] = HEAT.cell;
    ctx.setLineDash([]);
    ctx.lineWidth = 2;
    ctx.strokeRect(layout.x(times[column]), layout.y(heights[row + 1]), layout.x(times[column + 1]) - layout.x(times[column]), layout.y(heights[row]) - layout.y(heights[row + 1]));
  }
}

function heatAxes(ctx, layout, heights) {
  ctx.font = "12px system-ui, sans-serif";
  ctx.fillStyle = colour("soft");
  ctx.textBaseline = "middle";
  ctx.textAlign = "right";
  for (const each of decades(null, 0, heights[0], heights[heights.length - 1])) ctx.fillText(written(each, "seconds"), LEFT - 6, Math.min(layout.height - BOTTOM - 6, Math.max(6, layout.y(each))));
  ctx.textAlign = "center";
  const span = layout.end - layout.start;
  const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200].find((each) => span / each <= layout.width / 80) || 14400;
  for (let time = Math.ceil(layout.start / step) * step; time <= layout.end; time += step) ctx.fillText(clock(time), Math.min(layout.width - 14, layout.x(time)), layout.height - BOTTOM / 2);
  const limit = DATA.objectives[HEAT.metric];
  ctx.strokeStyle = colour("ink");
  ctx.setLineDash([5, 4]);
  ctx.beginPath();
  if (limit >= heights[0] && limit <= heights[heights.length - 1]) { ctx.moveTo(LEFT, layout.y(limit)); ctx.lineTo(layout.width, layout.y(limit)); }
  if (HEAT.at !== null) { ctx.moveTo(layout.x(HEAT.at), 0); ctx.lineTo(layout.x(HEAT.at), layout.height - BOTTOM); }
  ctx.stroke();
}

function requestsText(count) {
  return `${count} ${count === 1 ? "request" : "requests"}`;
}

/** Write what is under the mouse. */
function readHeatMap(event) {
  const { times, heights, counts } = heatData(HEAT.metric);
  const layout = heatLayout();
  const box = HEAT.canvas.getBoundingClientRect();
  const time = layout.start + ((event.clientX - box.left - LEFT) / (layout.width - LEFT)) * (layout.end - layout.start);
  const column = times.findIndex((each, i) => i + 1 < times.length && time >= each && time < times[i + 1]);
  const row = heights.findIndex((each, i) => i + 1 < heights.length && event.clientY - box.top <= layout.y(each) && event.clientY - box.top > layout.y(heights[i + 1]));
  HEAT.read.textContent = column < 0 || row < 0 ? "" : cellText(column, row);
}

function cellText(column, row) {
  const { times, heights, counts } = heatData(HEAT.metric);
  return `${clock(times[column])}: ${requestsText(counts[row * (times.length - 1) + column])} with ${written(heights[row], "seconds")} to ${written(heights[row + 1], "seconds")}`;
}

/** Move the marked cell of the focused heat map with the arrow keys, from the fullest one on; Escape removes the mark. */
function heatKey(event) {
  const [right, up] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] || [0, 0];
  if (event.target.tagName === "BUTTON" || !(right || up || event.key === "Escape")) return;
  event.preventDefault();
  const { times, heights, counts } = heatData(HEAT.metric);
  const columns = times.length - 1;
  const fullest = counts.reduce((best, count, i) => (count > counts[best] ? i : best), 0);
  const [column, row] = HEAT.cell ? [HEAT.cell[0] + right, HEAT.cell[1] + up] : [fullest % columns, Math.floor(fullest / columns)];
  const within = (at, most) => Math.min(most - 1, Math.max(0, at));
  HEAT.cell = event.key === "Escape" ? null : [within(column, columns), within(row, heights.length - 1)];
  HEAT.read.textContent = HEAT.cell ? cellText(...HEAT.cell) : "";
  drawHeatMap();
}

/** Follow the cursor of a chart over time. */
function moveHeatCursor(plot) {
  const at = plot.cursor.idx === null || plot.cursor.idx === undefined ? null : plot.data[0][plot.cursor.idx];
  if (!HEAT.canvas || at === HEAT.at) return;
  HEAT.at = at;
  drawHeatMap();
}

/** Follow the zoom of a chart over time. */
function zoomHeatMap(plot) {
  HEAT.view = [plot.scales.x.min, plot.scales.x.max];
  drawHeatMap();
}
