// Puts the page together: charts, limits, buttons that copy; redraws for another width, colour scheme, and for print.
"use strict";
function addCharts() {
  const place = document.getElementById("charts");
  for (const chart of TIMES.length > 1 ? DATA.charts : []) addChart(place, chart.title, (width) => timeChart(chart, width));
  addHeatMap(place);
  if (Object.keys(DATA.curves.curves).length) addChart(place, "Share of requests (ITL: of tokens) at or below a latency", distributionChart);
  if (DATA.load.length) addChart(place, "Latency of each stage against its throughput, req/s", loadChart);
}

function redraw() {
  CHARTS.forEach(drawChart);
  drawHeatMap();
}

function addCopyButtons() {
  for (const button of document.querySelectorAll(".copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(button.previousElementSibling.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(button.previousElementSibling);
        button.textContent = "Selected";
      }
    });
  }
}

addLimits(document.getElementById("limits"));
addCharts();
addCopyButtons();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
let resizing = 0;
window.addEventListener("resize", () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(redraw); });
