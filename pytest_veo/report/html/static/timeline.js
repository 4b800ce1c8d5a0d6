// One counter over the session, a band for each test.
function timelineData(counter) {
  const values = column(counter);
  const lanes = new Map();
  for (let test = 0; test < TESTS; test++) {
    if (values.before[test] === null || tests.start[test] < 0) continue;
    const worker = tests.worker.length ? tests.worker[test] : "";
    if (!lanes.has(worker)) lanes.set(worker, [[], []]);
    const [x, y] = lanes.get(worker);
    const begin = tests.start[test] / 1000;
    x.push(begin, Math.max(begin + tests.ms[test] / 1000, begin + 1e-6));
    y.push(values.before[test], values.after[test]);
  }
  const names = [...lanes.keys()].sort();
  const tables = names.map((name) => lanes.get(name).map((list) => list));
  for (const table of tables) sortByTime(table);
  return { names, data: tables.length ? uPlot.join(tables) : [[], []] };
}

// Starts are known to the millisecond: short tests may seem to begin before the last end.
function sortByTime([x]) {
  for (let i = 1; i < x.length; i++) if (x[i] <= x[i - 1]) x[i] = x[i - 1] + 1e-6;
}

function bandsOf(chart) {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  const [low, high] = [chart.scales.x.min, chart.scales.x.max];
  let odd = false, covered = -1;
  for (const test of byStart) {
    const begin = tests.start[test] / 1000, end = begin + tests.ms[test] / 1000;
    if (end < low || begin > high) continue;
    const tone = standingOf(test).tone;
    odd = !odd;
    const left = chart.valToPos(begin, "x", true);
    const width = Math.max(chart.valToPos(end, "x", true) - left, devicePixelRatio);
    if (tone === "bad" || tone === "warn") {
      ctx.fillStyle = colour(`${tone}-band`);
      ctx.fillRect(left, bbox.top, Math.max(width, 2 * devicePixelRatio), bbox.height);
    } else if (odd && left >= covered) {
      ctx.fillStyle = colour("band");
      ctx.fillRect(left, bbox.top, width, bbox.height);
      covered = left + devicePixelRatio;
    }
  }
  ctx.restore();
}

const byStart = [...tests.start.keys()]
  .filter((test) => tests.start[test] >= 0)
  .sort((a, b) => tests.start[a] - tests.start[b]);

function testAt(seconds) {
  let low = 0, high = byStart.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (tests.start[byStart[middle]] / 1000 <= seconds) low = middle + 1;
    else high = middle;
  }
  return low ? byStart[low - 1] : -1;
}

const LANES = ["accent", "lane-2", "lane-3", "lane-4"];

function timelinePlot(counter, readout) {
  const [name, device, unit] = tests.counters[counter];
  const { names, data } = timelineData(counter);
  const known = data.slice(1).flat().filter((value) => value !== null && value !== undefined);
  let low = Infinity, high = -Infinity;
  for (const value of known) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const pad = (high - low || high || 1) * 0.08;
  const tell = (chart) => {
    const { idx } = chart.cursor;
    if (idx === null || idx === undefined) {
      readout.textContent = "";
      return;
    }
    const at = chart.data[0][idx];
    const test = testAt(at);
    const value = chart.data.slice(1).map((lane) => lane[idx]).find((each) => each !== null && each !== undefined);
    readout.textContent = `${at.toFixed(2)} s · ${formatValue(value, unit)}` +
      (test < 0 ? "" : ` · ${shortened(nameOf(test).name, 80)}`);
  };
  const make = () => ({
    data,
    options: {
      legend: { show: false },
      cursor: { drag: { x: true, y: false }, points: { size: 7 } },
      scales: { x: { time: false }, y: { range: [Math.max(0, low - pad), high + pad] } },
      axes: [
        axis(each((value) => (value ? formatNs(value * 1e9) : "0")), { size: 32 }),
        unit === "bytes" ? axis(sizes, { size: 84, splits: sizeSplits })
          : axis(each((value) => formatValue(value, unit)), { size: 84 }),
      ],
      series: [{}, ...names.map((_, lane) => ({
        stroke: () => colour(LANES[lane % LANES.length]),
        width: 1.5,
        spanGaps: true,
        points: { show: false },
      }))],
      hooks: {
        drawClear: [bandsOf],
        setCursor: [tell],
        ready: [(chart) => openOnClick(chart)],
      },
    },
  });
  const label = `${counterName([name, device])} over the session, ` +
    `from ${formatValue(low, unit)} to ${formatValue(high, unit)} in ${counted(TESTS)}`;
  return { figure: plot(label, 240, make, "timeline"), label, names };
}

// A click opens the test; the end of a drag, which zooms, is none.
function openOnClick(chart) {
  let from = null;
  chart.over.addEventListener("mousedown", (event) => { from = event.clientX; });
  chart.over.addEventListener("click", (event) => {
    if (from === null || Math.abs(event.clientX - from) > 3) return;
    const test = testAt(chart.posToVal(chart.cursor.left, "x"));
    if (test >= 0) location.hash = hashOf(test);
  });
}

function startTimeline() {
  const section = document.getElementById("timeline");
  if (!section || !tests.counters.length || !byStart.length) {
    section?.remove();
    return;
  }
  section.hidden = false;
  document.getElementById("to-timeline").hidden = false;
  const choice = document.getElementById("timeline-counter");
  tests.counters.forEach((counter, number) => {
    choice.append(element("option", { value: number, text: counterName(counter) }));
  });
  choice.value = section.dataset.counter;
  const holder = document.getElementById("timeline-plot");
  const readout = document.getElementById("timeline-readout");
  const show = () => {
    const { figure, label, names } = timelinePlot(Number(choice.value), readout);
    holder.replaceChildren(figure);
    document.getElementById("timeline-label").textContent =
      label + (names.length > 1 ? `, a line for each of ${names.length} workers` : "");
  };
  choice.addEventListener("change", show);
  show();
}
