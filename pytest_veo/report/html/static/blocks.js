// The page's numbers: each block is parsed when something of it is first shown.
const parsed = new Map();

function block(name) {
  if (!parsed.has(name)) {
    const element = document.getElementById(name);
    parsed.set(name, element ? JSON.parse(element.textContent) : null);
  }
  return parsed.get(name);
}

const tests = block("veo-tests");
const TESTS = tests.id.length;

function column(counter) {
  return block(`veo-counter-${counter}`);
}

function pastGrowth(test, counter) {
  const rows = block(`veo-past-${counter}`);
  return rows && rows[test] ? rows[test] : [];
}

function detailsOf(test) {
  const chunk = block(`veo-details-${Math.floor(test / tests.chunk)}`);
  return (chunk && chunk[test]) || {};
}

function standingOf(test) {
  const [name, tone] = tests.standings[tests.standing[test]];
  return { name, tone };
}

// `path::Class::test[id]` as where it is and what it is called.
function nameOf(test) {
  const id = tests.id[test];
  const cut = id.indexOf("::");
  if (cut < 0) return { path: "", name: visible(id) };
  return { path: visible(id.slice(0, cut)), name: visible(id.slice(cut + 2)) };
}

// The part of an address that leads to a test. Half a surrogate pair has no place in one.
function hashOf(test) {
  const id = tests.id[test];
  const name = /\p{Cs}/u.test(id) ? visible(id) : id;
  return `#test=${encodeURIComponent(name)}`;
}

function testNamed(name) {
  const test = tests.id.indexOf(name);
  return test >= 0 ? test : tests.id.findIndex((id) => visible(id) === name);
}

function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") made.textContent = value;
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function badge(test) {
  const { name, tone } = standingOf(test);
  return element("span", { class: `badge ${tone}`, text: name });
}
