// The tables below: lines, stacks, sizes.

function rowOf(bytes, count, whole, where) {
  const row = element("tr");
  const cell = element("td");
  cell.append(...where);
  row.append(element("td", size(bytes)), element("td", percent(whole ? bytes / whole : 0)), element("td", number(count)), cell);
  return row;
}

function lineRows(whole) {
  const at = 1 + 2 * ["total", "peak", "leaks", "temporary", "reserved"].indexOf(mode);
  return process.lines.filter(line => line[at + 1] > 0 &&
      (!query || label(process.frames[line[0]]).toLowerCase().includes(query)))
    .sort((a, b) => b[at] - a[at]).slice(0, TABLE_ROWS).map(line => {
      const frame = process.frames[line[0]];
      return rowOf(line[at], line[at + 1], whole, [element("code", place(frame) || frame[0]), " ", frame[1] ? frame[0] : ""]);
    });
}

function stackRows(whole) {
  const bytes = process[mode + "Bytes"], counts = process[mode + "Count"], nodes = [];
  for (let i = 1; i < tree.count; i++)
    if (counts[i] > 0 && process.nodeFrames[i] >= 0) nodes.push(i);
  const holds = node => {
    for (let i = node; i !== 0; i = process.parents[i]) if (matches(i)) return true;
    return false;
  };
  return nodes.sort((a, b) => bytes[b] - bytes[a]).filter(node => !query || holds(node)).slice(0, TABLE_ROWS).map(node => {
    const callers = element("div", undefined, "callers"), names = [];
    for (let i = process.parents[node]; i !== 0; i = process.parents[i]) names.push(label(frameOf(i)));
    callers.textContent = names.slice(0, 6).join("  ←  ") + (names.length > 6 ? "  ← …" : "");
    return rowOf(bytes[node], counts[node], whole, [element("code", label(frameOf(node))), callers]);
  });
}

function sizeRows() {
  const all = process.sizes.reduce((a, b) => a + b, 0), most = Math.max(...process.sizes, 1), rows = [];
  process.sizes.forEach((count, i) => {
    if (!count) return;
    const row = element("tr"), cell = element("td"), bar = element("div");
    bar.style.cssText = `height:12px;width:${100 * count / most}%;min-width:1px;background:var(--accent);border-radius:2px`;
    cell.append(bar);
    row.append(element("td", i ? size(2 ** (i - 1)) + " – " + size(2 ** i) : "0 B"), element("td", percent(count / all)),
      element("td", number(count)), cell);
    rows.push(row);
  });
  return rows;
}

function showTable() {
  const whole = sums().bytes[0], made = element("table"), head = element("tr");
  const titles = table === "sizes" ? ["Size", "%", "Count", ""] : ["Bytes", "%", "Count", table === "lines" ? "Line" : "Stack"];
  head.append(...titles.map(title => element("th", title)));
  const rows = table === "lines" ? lineRows(whole) : table === "stacks" ? stackRows(whole) : sizeRows();
  made.append(head, ...rows);
  $("table").replaceChildren(made);
}
