// Quantities as text, as pytest_veo.units writes them; a test holds the two together.
const SIZES = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]];

function sign(value, signed) {
  return value < 0 ? "-" : signed ? "+" : "";
}

// A half goes to the even neighbour, as Python's formats round it.
function rounded(size, digits) {
  const scaled = size * 10 ** digits, below = Math.floor(scaled);
  const whole = scaled - below === 0.5 ? below + (below % 2) : Math.round(scaled);
  return (whole / 10 ** digits).toFixed(Math.max(0, digits));
}

function formatBytes(value, signed = false) {
  const size = Math.abs(value);
  if (size < 1024) {
    const text = Number.isInteger(size) ? size.toFixed(0) : rounded(size, 1);
    return `${sign(value, signed)}${text} B`;
  }
  // From below: what would round to 1024 of one unit is 1 of the next.
  for (const [unit, step] of [...SIZES].reverse()) {
    if (size / step < 1023.95 || unit === "TiB") {
      const text = rounded(size / step, 1).replace(/\.0$/, "");
      return `${sign(value, signed)}${text} ${unit}`;
    }
  }
}

function formatNs(value) {
  const size = Math.abs(value);
  for (const [unit, step] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]]) {
    if (size >= step * (unit === "us" ? 1 : 0.9995)) {
      const number = value / step;
      if (Math.abs(number) >= 999.5) return `${sign(value, false)}${rounded(Math.abs(number), 0)} ${unit}`;
      const digits = 2 - Math.floor(Math.log10(Math.abs(number)));
      return `${sign(value, false)}${Number(rounded(Math.abs(number), digits))} ${unit}`;
    }
  }
  return `${sign(value, false)}${rounded(size, 0)} ns`;
}

function formatCount(value, signed = false) {
  const digits = Number.isInteger(value) ? 0 : 1;
  const near = Math.sign(value) * Number(rounded(Math.abs(value), digits));
  const text = near.toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return (signed && value >= 0 ? "+" : "") + text;
}

function formatValue(value, unit, signed = false) {
  if (value === null || value === undefined) return "not read";
  if (unit === "bytes") return formatBytes(value, signed);
  if (unit === "ns") return formatNs(value);
  return formatCount(value, signed);
}

function counted(tests) {
  return `${formatCount(tests)} ${tests === 1 ? "test" : "tests"}`;
}

// Characters that control, hide or turn text around are shown by their code points.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

function visible(text) {
  return text.replace(HIDDEN, (char) => {
    const code = char.codePointAt(0).toString(16).padStart(4, "0");
    return `\\u${code}`;
  });
}

function shortened(text, limit) {
  if (text.length <= limit) return text;
  const half = Math.floor(limit / 2);
  return `${text.slice(0, half)} … ${text.slice(-half)}`;
}

function counterName([name, device]) {
  return visible(device === "host" ? name : `${name} on ${device}`);
}
