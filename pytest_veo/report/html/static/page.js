// The address says what is shown: `#test=ID`, or `#q=words&standing=leak,retention&sort=-ms`.
function setFilter(standings, words) {
  view.standings = standings;
  view.words = words;
  query.value = words;
  for (const tile of document.querySelectorAll("button.tile")) {
    tile.setAttribute("aria-pressed", String(standings.has(Number(tile.dataset.standing))));
  }
  document.getElementById("clear").hidden = !standings.size && !words;
}

function clearFilters() {
  setFilter(new Set(), "");
}

function remember() {
  const parts = [];
  if (view.words) parts.push(`q=${encodeURIComponent(view.words)}`);
  if (view.standings.size) {
    const names = [...view.standings].map((number) => tests.standings[number][0]);
    parts.push(`standing=${encodeURIComponent(names.join(","))}`);
  }
  if (view.sort !== "standing" || view.down) parts.push(`sort=${view.down ? "-" : ""}${view.sort}`);
  history.replaceState(null, "", parts.length ? `#${parts.join("&")}` : location.pathname + location.search);
}

function update() {
  arrange();
  show();
  remember();
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function follow() {
  const wanted = new Map(
    location.hash.slice(1).split("&").filter(Boolean).map((part) => {
      const cut = part.indexOf("=");
      return [part.slice(0, cut), decoded(part.slice(cut + 1))];
    }),
  );
  if (wanted.has("test")) {
    const test = testNamed(wanted.get("test"));
    if (test >= 0) reveal(test);
    else status.textContent = `This run has no test ${visible(shortened(wanted.get("test"), 200))}`;
    return;
  }
  if (!["q", "standing", "sort"].some((name) => wanted.has(name))) return;
  const names = (wanted.get("standing") || "").split(",");
  const numbers = names.map((name) => tests.standings.findIndex(([each]) => each === name));
  setFilter(new Set(numbers.filter((number) => number >= 0)), wanted.get("q") || "");
  const sort = wanted.get("sort") || "standing", down = sort.startsWith("-");
  if (KEYS[sort.replace("-", "")]) sortBy(sort.replace("-", ""), down);
  arrange();
  show();
}

function start() {
  for (const head of document.querySelectorAll("#tests-table thead th[data-sort]")) {
    head.firstElementChild.addEventListener("click", () => {
      const name = head.dataset.sort, is = view.sort === name;
      sortBy(name, is ? !view.down : ["growth", "ms"].includes(name));
      update();
    });
  }
  for (const tile of document.querySelectorAll("button.tile")) {
    tile.addEventListener("click", () => {
      const chosen = new Set(view.standings), number = Number(tile.dataset.standing);
      if (!chosen.delete(number)) chosen.add(number);
      setFilter(chosen, view.words);
      update();
    });
  }
  let waiting = 0;
  query.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      setFilter(view.standings, query.value);
      update();
    }, 80);
  });
  document.getElementById("clear").addEventListener("click", () => {
    clearFilters();
    update();
    query.focus();
  });
  after.addEventListener("click", () => more()?.querySelector("button.name").focus());
  before.addEventListener("click", () => earlier()?.querySelector("button.name").focus());
  addEventListener("hashchange", follow);

  sortBy("standing", false);
  arrange();
  show();
  startTimeline();
  for (const holder of document.querySelectorAll("[data-plots]")) {
    lazily(holder, () => holder.append(...plotsOf(Number(holder.dataset.plots), true)));
  }
  follow();
  document.documentElement.dataset.ready = "true";
}

start();
