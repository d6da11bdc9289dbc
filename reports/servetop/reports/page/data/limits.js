// Limits that the reader moves: goodput and attainment are counted again from the requests.
"use strict";
const NAMES = { ttft: "TTFT", tpot: "TPOT", e2el: "E2EL", ttfot: "TTFOT" };
const RUNS = DATA.runs.map(({ name, duration, rows }) => ({
  name, duration, rows: rows.rows,
  columns: Object.fromEntries(Object.entries(rows.columns).map(([metric, column]) => [metric, unpacked(column)])),
  served: unpacked(rows.served),
  stages: unpacked(rows.stages),
  counts: rows.counts ? unpacked(rows.counts) : null,
})).filter((run) => run.rows && run.duration > 0);
const LIMITED = [...new Set(RUNS.flatMap((run) => Object.keys(run.columns)))];
const LIMITS = { ...DATA.objectives };
const STEPS = 400;
const TIED = 0.01;  // Relative difference up to which two cells are equally good.

/** Count the requests of a run within all limits, in total and of each stage: `good` and `ended`. */
function countWithin(run, limits) {
  const stages = new Map();
  const total = { good: 0, ended: 0 };
  const active = Object.entries(limits).map(([name, limit]) => [run.columns[name], limit]).filter(([column]) => column);
  for (let row = 0; row < run.rows; row += 1) {
    const count = run.counts ? run.counts[row] : 1;
    let good = run.served[row] === 1;
    for (const [column, limit] of active) if (column[row] > limit) { good = false; break; }
    const stage = stages.get(run.stages[row]) || { good: 0, ended: 0 };
    stages.set(run.stages[row], stage);
    for (const each of [total, stage]) { each.ended += count; if (good) each.good += count; }
  }
  return { total, stages };
}

/** Return the lowest and highest latency of a column, and positions on a logarithmic slider. */
function span(name) {
  let low = Infinity;
  let high = 0;
  for (const { columns } of RUNS) for (const value of columns[name] || []) if (value > 0 && value < Infinity) { low = Math.min(low, value); high = Math.max(high, value); }
  if (DATA.objectives[name]) { low = Math.min(low, DATA.objectives[name] / 2); high = Math.max(high, DATA.objectives[name] * 2); }
  return high > low ? { low: Math.log(low), high: Math.log(high * 1.01) } : null;
}

/** Add a slider and a field for each latency, and the outcome beside them. */
function addLimits(place) {
  place.replaceChildren();
  if (!RUNS.length) { place.append(make("p", {}, "No requests ended in this run.")); return; }
  const sliders = make("div", {});
  const outcome = make("div", { class: RUNS.length > 1 ? "outcome runs" : "outcome", "aria-live": "polite" });
  const show = () => showOutcome(outcome);
  const controls = LIMITED.map((name) => addLimit(sliders, name, show)).filter((each) => each);
  const reset = make("button", { type: "button" }, "Recorded limits");
  reset.addEventListener("click", () => {
    for (const name of Object.keys(LIMITS)) delete LIMITS[name];
    Object.assign(LIMITS, DATA.objectives);
    controls.forEach((control) => control());
    show();
  });
  sliders.append(reset);
  place.append(sliders, outcome);
  show();
}

function addLimit(place, name, show) {
  const range = span(name);
  if (!range) return null;
  const label = NAMES[name] || name.toUpperCase();
  const slider = make("input", { type: "range", min: "0", max: String(STEPS), step: "1", "aria-label": `Limit of ${label}`, "data-limit": name });
  const field = make("input", { type: "number", min: "0", step: "any", placeholder: "none", "aria-label": `Limit of ${label} in milliseconds`, "data-field": name });
  const control = () => {
    const limit = LIMITS[name];
    slider.value = limit === undefined ? STEPS : Math.min(STEPS - 1, Math.max(0, ((Math.log(limit) - range.low) / (range.high - range.low)) * STEPS));
    slider.setAttribute("aria-valuetext", limit === undefined ? "no limit" : written(limit, "seconds"));
    field.value = limit === undefined ? "" : String(Number((limit * 1000).toPrecision(4)));
  };
  slider.addEventListener("input", () => {
    if (Number(slider.value) >= STEPS) delete LIMITS[name];
    else LIMITS[name] = Number(Math.exp(range.low + (Number(slider.value) / STEPS) * (range.high - range.low)).toPrecision(3));
    control();
    show();
  });
  field.addEventListener("change", () => {
    if (Number(field.value) > 0) LIMITS[name] = Number(field.value) / 1000;
    else delete LIMITS[name];
    control();
    show();
  });
  place.append(make("div", { class: "limit" }, make("span", {}, label), slider, make("span", {}, field, " ms")));
  control();
  return control;
}

/** Write the counts of the limits in force, of each run and of each of its stages. */
function showOutcome(place) {
  const limits = Object.entries(LIMITS).map(([name, limit]) => `${NAMES[name] || name} ≤ ${written(limit, "seconds")}`);
  const parts = RUNS.map((run) => {
    const { total, stages } = countWithin(run, LIMITS);
    showStages(run.name, stages);
    showCells(stages);
    return outcomeOf(run, total);
  });
  place.replaceChildren(...parts, make("div", { class: "read" }, limits.length ? `within ${limits.join(", ")}` : "no limit: all successful requests count"));
}

function outcomeOf(run, total) {
  const goodput = total.good / run.duration;
  const share = total.ended ? total.good / total.ended : NaN;
  const id = (name) => `${name}${run.name && `-${run.name}`}`;
  return make("div", {},
    ...(run.name ? [make("span", { class: "letter" }, run.name)] : []),
    make("div", {}, make("strong", { id: id("goodput"), "data-value": String(goodput) }, `${threeDigits(goodput, true)} req/s`), " goodput"),
    make("div", {}, make("strong", { id: id("attainment"), "data-value": String(share) }, shareText(share)), ` of ${total.ended.toLocaleString("en")} requests`),
  );
}

/** Write the share within the limits into the cells of a run's stages. */
function showStages(name, stages) {
  for (const cell of document.querySelectorAll(`[data-within-run="${name}"]`)) {
    const stage = stages.get(Number(cell.dataset.withinStage));
    cell.textContent = stage ? shareText(stage.good / stage.ended) : "–";
  }
}

/** Write the goodput of each cell of a sweep, and mark the best one that keeps the limits, as the verdict of a sweep does. */
function showCells(stages) {
  const table = document.getElementById("recounted");
  if (!table) return;
  const keptShare = Number(table.dataset.keptShare);
  const cells = [...table.querySelectorAll("[data-recounted-stages]")].map((place) => {
    const seconds = place.dataset.recountedSeconds.split(" ").map(Number);
    const counted = place.dataset.recountedStages.split(" ").map((stage) => stages.get(Number(stage)) || { good: 0, ended: 0 });
    const rates = counted.map(({ good }, index) => good / seconds[index]).filter(Number.isFinite);
    const [good, ended] = ["good", "ended"].map((name) => counted.reduce((sum, each) => sum + each[name], 0));
    const goodput = rates.length ? rates.reduce((sum, each) => sum + each, 0) / rates.length : NaN;
    return { place, goodput, kept: ended > 0 && good / ended >= keptShare, batch: Number(place.dataset.recountedBatch) };
  });
  const kept = cells.filter((cell) => cell.kept && cell.goodput > 0);
  const highest = Math.max(...kept.map((cell) => cell.goodput));
  const tied = kept.filter((cell) => cell.goodput >= (1 - TIED) * highest);
  const best = tied.sort((one, other) => one.batch - other.batch || other.goodput - one.goodput)[0];
  for (const cell of cells) {
    const marks = `${cell === best ? "★" : ""}${cell.kept ? "" : "✗"}`;
    cell.place.textContent = Number.isFinite(cell.goodput) ? `${threeDigits(cell.goodput, true)} ${marks}`.trim() : "–";
    cell.place.classList.toggle("best", cell === best);
  }
}

/** Return a share in percent; less than all is never 100 %. */
function shareText(share) {
  if (!Number.isFinite(share)) return "–";
  return share === 1 ? "100 %" : `${Math.min(99.9, Math.round(share * 1000) / 10).toFixed(1)} %`;
}
