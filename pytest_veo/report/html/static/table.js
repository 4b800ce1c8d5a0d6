// The table of all tests: filtered, sorted, and made a hundred rows at a time.
const BATCH = 100;
const body = document.querySelector("#tests-table tbody");
const status = document.getElementById("tests-status");
const before = document.getElementById("tests-before");
const after = document.getElementById("tests-after");
const query = document.getElementById("filter");
const view = { sort: "standing", down: false, standings: new Set(), words: "", shown: [], from: 0, to: 0 };
let lower = null;

const KEYS = {
  standing: (test) => tests.standing[test],
  test: (test) => tests.id[test],
  growth: (test) => weight(test),
  ms: (test) => tests.ms[test],
  order: (test) => test,
};

// Growth of unlike things in one order: bytes, and a block for each count.
function weight(test) {
  const counter = tests.counter[test];
  if (counter < 0) return -Infinity;
  return tests.growth[test] * (tests.counters[counter][2] === "count" ? 64 : 1);
}

function isWanted(test, words) {
  if (view.standings.size && !view.standings.has(tests.standing[test])) return false;
  return words.every((word) => lower[test].includes(word));
}

function arrange() {
  const words = view.words.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length && !lower) {
    lower = tests.id.map((id, test) => `${id} ${tests.headline[test] || ""}`.toLowerCase());
  }
  const key = KEYS[view.sort], turn = view.down ? -1 : 1;
  const found = [];
  for (let test = 0; test < TESTS; test++) if (isWanted(test, words)) found.push(test);
  const keys = new Map(found.map((test) => [test, key(test)]));
  found.sort((a, b) => {
    const [x, y] = [keys.get(a), keys.get(b)];
    if (x !== y) return x < y ? -turn : turn;
    if (view.sort === "standing") return weight(b) - weight(a) || a - b;
    return a - b;
  });
  view.shown = found;
}

function show(from = 0) {
  view.from = Math.max(0, from);
  view.to = view.from;
  body.replaceChildren();
  more();
  const found = view.shown.length;
  if (!found) body.append(element("tr", {}, element("td", { colspan: 5, class: "muted", text: "No test is like that." })));
  status.textContent = found === TESTS ? counted(TESTS) : `${formatCount(found)} of ${counted(TESTS)}`;
}

function more() {
  const upTo = Math.min(view.to + BATCH, view.shown.length);
  const rows = view.shown.slice(view.to, upTo).map(row);
  body.append(...rows);
  view.to = upTo;
  sentinels();
  return rows[0];
}

function earlier() {
  const from = Math.max(0, view.from - BATCH);
  const rows = view.shown.slice(from, view.from).map(row);
  body.prepend(...rows);
  view.from = from;
  sentinels();
  return rows.at(-1);
}

function sentinels() {
  const rest = view.shown.length - view.to;
  after.hidden = !rest;
  after.textContent = `Show ${formatCount(Math.min(rest, BATCH))} more of ${formatCount(rest)}`;
  before.hidden = !view.from;
  before.textContent = `Show ${formatCount(Math.min(view.from, BATCH))} earlier`;
}

function row(test) {
  const { path, name } = nameOf(test);
  const counter = tests.counter[test];
  const toggle = element("button", {
    type: "button", class: "name", "aria-expanded": "false", "aria-controls": `detail-${test}`,
  }, element("bdi", { text: shortened(name, 240) }));
  toggle.addEventListener("click", () => setOpen(line, test, toggle.getAttribute("aria-expanded") !== "true"));
  // On a phone the verdict stands above the name, and its column is left out.
  const above = element("span", { class: "above" }, badge(test));
  const subject = element("th", { scope: "row" }, above, toggle,
    element("bdi", { class: "path", text: shortened(path, 240) }));
  const said = tests.headline[test];
  if (said) subject.append(element("span", { class: "said", text: visible(shortened(said, 300)) }));
  const grown = element("td", { class: "number growth" });
  const past = element("td", { class: "past" });
  if (counter >= 0) {
    const growth = tests.growth[test], unit = tests.counters[counter][2];
    grown.append(element("span", { text: growth ? formatValue(growth, unit, true) : "0" }));
    if (growth) grown.append(element("span", { class: "path", text: visible(tests.counters[counter][0]) }));
    if (tests.past && growth) past.append(sparkOf(test, counter));
  }
  const line = element("tr", { id: `row-${test}` },
    element("td", { class: "standing" }, badge(test)), subject, grown,
    ...(tests.past ? [past] : []),
    element("td", { class: "number took", text: formatNs(tests.ms[test] * 1e6) }));
  return line;
}

function setOpen(line, test, open) {
  const toggle = line.querySelector("button.name");
  const next = document.getElementById(`detail-${test}`);
  toggle.setAttribute("aria-expanded", String(open));
  if (!open) {
    next?.remove();
  } else if (!next) {
    const cell = element("td", { colspan: line.children.length }, detailOf(test));
    line.after(element("tr", { id: `detail-${test}`, class: "opened" }, cell));
  }
}

function sortBy(name, down) {
  view.sort = name;
  view.down = down;
  for (const head of document.querySelectorAll("#tests-table thead th[data-sort]")) {
    const is = head.dataset.sort === name;
    if (is) head.setAttribute("aria-sort", down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
}

// Opens a test where it stands in the table, and gives it the focus.
function reveal(test) {
  if (!view.shown.includes(test)) {
    clearFilters();
    arrange();
  }
  const place = view.shown.indexOf(test);
  if (place < view.from || place >= view.to || !body.children.length) show(place > 20 ? place - 3 : 0);
  const line = document.getElementById(`row-${test}`);
  setOpen(line, test, true);
  line.querySelector("button.name").focus({ preventScroll: true });
  line.scrollIntoView({ block: "start" });
  for (const marked of body.querySelectorAll(".linked")) marked.classList.remove("linked");
  line.classList.add("linked");
}
