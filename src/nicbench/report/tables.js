// Tables that are sorted, filtered and saved. Without this script they are the same tables, in their own order.
const MANY = 15; // rows from which on a table has a box for words that its rows must hold
const UNITS = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, kpps: 1e3, Mpps: 1e6, Gpps: 1e9, "kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9, "Tb/s": 1e12 };
const NUMBER = /^(?:below|above|about|[<>≤≥~])?\s*([-+]?\d[\d.]*(?:e[-+]?\d+)?)\s*([^\s,;]*)/i;

// What a cell says, in one line; thin spaces within numbers are left out.
const textOf = (cell) => {
  const copy = cell.cloneNode(true);
  for (const end of copy.querySelectorAll("br, .caption")) end.prepend(" ");
  for (const end of copy.querySelectorAll("br")) end.replaceWith(" ");
  return copy.textContent.replace(/(?<=\d)[\u2009\u202f](?=\d)/g, "").replace(/\u2212/g, "-").replace(/\s+/g, " ").trim();
};
const numberOf = (text) => {
  const found = NUMBER.exec(text);
  return found ? found[1] * (UNITS[found[2]] ?? 1) : NaN;
};
const isUnknown = (text) => /^[-–—]?$/.test(text);

// A column of numbers, or of texts in which numbers have their places; what is unknown comes last either way.
const comparing = (texts) => {
  const known = texts.filter((text) => !isUnknown(text));
  const numeric = known.filter((text) => !Number.isNaN(numberOf(text))).length >= 0.8 * known.length;
  const order = new Intl.Collator("en", { numeric: true });
  const least = (text) => (Number.isNaN(numberOf(text)) ? Infinity : numberOf(text));
  return numeric ? (one, two) => least(one) - least(two) || order.compare(one, two) : order.compare;
};

class SortedTable {
  constructor(table, heads) {
    this.table = table;
    this.rows = [...table.tBodies].flatMap((body) => [...body.rows].map((row) => ({ row, body })));
    for (const [column, head] of heads.entries()) this.head(head, column);
    this.heads = heads;
  }

  head(head, column) {
    if (head.tagName !== "TH" || head.querySelector("a, button") || !head.textContent.trim()) return;
    const button = document.createElement("button");
    set(button, { type: "button", class: "sort" });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => this.sort(head, column));
  }

  // Upwards, downwards, and as it was.
  sort(head, column) {
    const next = { ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
    for (const other of this.heads) other.removeAttribute("aria-sort");
    const way = next === undefined ? "ascending" : next;
    if (!way) return this.rows.forEach(({ row, body }) => body.append(row));
    head.setAttribute("aria-sort", way);
    const texts = new Map(this.rows.map(({ row }) => [row, textOf(row.cells[column])]));
    const compare = comparing([...texts.values()]);
    const sign = way === "ascending" ? 1 : -1;
    const sorted = this.rows.map(({ row }) => row).sort((one, two) => {
      const [first, second] = [texts.get(one), texts.get(two)];
      return isUnknown(first) - isUnknown(second) || sign * compare(first, second);
    });
    this.table.tBodies[0].append(...sorted);
  }
}

const filtered = (table, around, name) => {
  const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
  if (rows.length <= MANY) return;
  const box = document.createElement("div");
  const input = document.createElement("input");
  const count = document.createElement("output");
  let texts = null; // read when they are first asked for
  box.className = "filter";
  set(input, { type: "search", placeholder: "filter rows", "aria-label": `filter the rows of ${name}` });
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    texts ??= rows.map((row) => [...row.cells].map(textOf).join(" ").toLowerCase());
    let left = 0;
    for (const [at, row] of rows.entries()) {
      row.hidden = !words.every((word) => texts[at].includes(word));
      left += !row.hidden;
    }
    count.textContent = words.length ? `${left} of ${rows.length} rows` : "";
  });
  box.append(input, count);
  around.prepend(box);
};

// RFC 4180; a head over several columns is said with each of them. Rows that the filter hides are left out.
const csvOf = (table) => {
  const grid = [];
  for (const [at, row] of [...table.rows].filter((one) => !one.hidden).entries()) {
    grid[at] ??= [];
    let column = 0;
    for (const cell of row.cells) {
      while (grid[at][column] !== undefined) column += 1;
      for (let down = 0; down < cell.rowSpan; down += 1) {
        grid[at + down] ??= [];
        for (let right = 0; right < cell.colSpan; right += 1) grid[at + down][column + right] = textOf(cell);
      }
    }
  }
  const heads = grid.splice(0, table.tHead?.rows.length ?? 0);
  const width = Math.max(...heads.map((row) => row.length), ...grid.map((row) => row.length));
  const named = Array.from({ length: width }, (_, at) => [...new Set(heads.map((row) => row[at]).filter(Boolean))].join(": "));
  const quoted = (text = "") => (/[",\n]|^[=+@]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  return [...(heads.length ? [named] : []), ...grid].map((row) => Array.from({ length: width }, (_, at) => quoted(row[at])).join(",")).join("\r\n") + "\r\n";
};

for (const table of document.querySelectorAll(".scroll > table")) {
  const around = table.parentNode;
  const heads = [...(table.tHead?.rows[table.tHead.rows.length - 1]?.cells ?? [])];
  const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
  const even = (row) => row.cells.length === heads.length && [...row.cells].every((cell) => cell.colSpan === 1 && cell.rowSpan === 1);
  const name = table.caption?.textContent || around.closest("section")?.querySelector("h2, h3, h4")?.textContent || "this table";
  if (heads.length && rows.every(even)) {
    if (rows.length > 2) new SortedTable(table, heads);
    filtered(table, around, name);
  }
  offer(around, { CSV: ["save this table as CSV", () => save(new Blob(["\ufeff", csvOf(table)], { type: "text/csv" }), name, "csv")] });
}
