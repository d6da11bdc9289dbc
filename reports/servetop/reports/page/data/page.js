// Puts the page together: charts, limits, buttons that copy; redraws for another width, colour scheme, and for print.
"use strict";
function addCharts() {
  const place = document.getElementById("charts");
  for (const chart of TIMES.length > 1 ? DATA.charts : []) addChart(place, chart.title, (width) => timeChart(chart, width));
  addHeatMap(place);
  for (const chart of DATA.distributions) addChart(place, chart.title, (width) => distributionChart(chart, width));
  for (const chart of DATA.load) addChart(place, chart.title, (width) => loadChart(chart, width));
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

if (document.getElementById("limits")) addLimits(document.getElementById("limits"));
addSearch(document.getElementById("search"));
addCharts();
addCopyButtons();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
for (const [name, printing] of [["beforeprint", true], ["afterprint", false]]) {
  window.addEventListener(name, () => { document.documentElement.classList.toggle("printing", printing); redraw(); });
}
let resizing = 0;
window.addEventListener("resize", () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(redraw); });
