// The process that is shown: its tree of stacks, with sums by mode, its notes and its cards.

function plant() {
  const count = process.parents.length, first = new Int32Array(count).fill(-1), next = new Int32Array(count).fill(-1);
  for (let i = count - 1; i > 0; i--) {
    next[i] = first[process.parents[i]];
    first[process.parents[i]] = i;
  }
  tree = {count, first, next, sums: {}};
}

// Own and all above, by mode; parents come before their children.
function sums(of = mode) {
  if (!tree.sums[of]) {
    const bytes = Float64Array.from(process[of + "Bytes"]), counts = Float64Array.from(process[of + "Count"]);
    for (let i = tree.count - 1; i > 0; i--) { // "(others)" stand behind all, and have no children
      bytes[process.parents[i]] += bytes[i];
      counts[process.parents[i]] += counts[i];
    }
    tree.sums[of] = {bytes, counts};
  }
  return tree.sums[of];
}

function commandOf(one) {
  let command = one.command;
  try { command = [].concat(JSON.parse(command)).join(" "); } catch { /* as it is */ }
  return command || "process " + one.pid;
}

function showProcess(index) {
  process = data.processes[index];
  plant();
  root = selected = 0;
  $("title").textContent = "Memory of " + commandOf(process);
  document.title = $("title").textContent;
  showNotes();
  showCards();
  drawUsage();
  showFlame();
  showTable();
}

function showNotes() {
  const notes = [];
  if (process.sampled) notes.push("Allocations were sampled: numbers are estimates, ± their standard error.");
  if (process.lost) notes.push(many(process.lost, "record") + " could not be kept and are missing here.");
  if (process.dropped) notes.push("Older records were dropped to stay within the limit of size or time.");
  if (!process.complete) notes.push("The recording was not finished: its end is where its records end.");
  if (process.leftOut) notes.push(many(process.leftOut, "small stack") + " of " +
    number(process.leftOut + process.parents.length) + " are put together as (others).");
  $("notes").replaceChildren(...notes.map(text => element("li", text)));
}

function showCards() {
  const card = (title, amount, more) => {
    const made = element("div", undefined, "card");
    const error = amount && amount.bytes_error ? " ± " + size(amount.bytes_error) : "";
    made.append(element("span", title), element("b", amount ? size(amount.bytes) + error : "–"), element("span", more));
    return made;
  };
  const count = amount => amount ? many(amount.count, "allocation") : "not known from samples";
  const k = process.temporary_within, resident = process.resident, reserved = process.reserved;
  const beside = [];
  if (resident) beside.push(card("Resident set, at most", {bytes: resident.peak},
    size(resident.files) + " of it files: interpreter, libraries"));
  if (reserved) beside.push(card("Reserved, not in use", reserved, many(reserved.count, "range") + " of address space"));
  $("cards").replaceChildren(
    card("High-water mark", process.peak, count(process.peak) + ", after " + time(process.peak_ns - process.firstNs)),
    card("Never freed", process.leaks, count(process.leaks)),
    card(k === 1 ? "Temporary" : "Temporary, of the last " + k, process.temporary, count(process.temporary)),
    card("All allocated", process.total, count(process.total) + ", " + many(process.frees, "free")), ...beside);
}
