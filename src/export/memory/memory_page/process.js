// Facts about the selected process: its title, its notes and its cards.

import { many, shown } from "./data.js";
import { element, make } from "./elements.js";
import { formatBytes, formatCount, formatTime } from "./units.js";

export function commandOf(one) {
  let command = one.command;
  try {
    command = [].concat(JSON.parse(command)).join(" ");
  } catch { /* keep the text as it is */ }
  return command || `process ${one.pid}`;
}

export function showProcess() {
  document.title = element("title").textContent = `Memory of ${commandOf(shown.process)}`;
  element("notes").replaceChildren(...notesOf(shown.process).map((text) => make("li", "", text)));
  element("cards").replaceChildren(...cardsOf(shown.process));
}

function notesOf(process) {
  const notes = [];
  if (process.sampled) notes.push("Allocations were sampled: numbers are estimates, ± their standard error.");
  if (process.lost) notes.push(`${many(process.lost, "record")} could not be kept and are missing here.`);
  if (process.dropped) notes.push("Older records were dropped to stay within the limit of size or time.");
  if (!process.complete) notes.push("The recording was not finished: its end is where its records end.");
  const { leftOut, parents } = process;
  if (leftOut) notes.push(`${many(leftOut, "small stack")} of ${formatCount(leftOut + parents.length)} are put together as (others).`);
  return notes;
}

function makeCard(title, amount, more) {
  const made = make("div", "card");
  const error = amount?.bytes_error ? ` ± ${formatBytes(amount.bytes_error)}` : "";
  made.append(make("span", "", title), make("b", "", amount ? formatBytes(amount.bytes) + error : "–"), make("span", "", more));
  return made;
}

function cardsOf({ temporary_within: within, resident, reserved, peak, peak_ns: peakNs, firstNs, leaks, temporary, total, frees }) {
  const count = (amount) => (amount ? many(amount.count, "allocation") : "not known from samples");
  const cards = [
    makeCard("High-water mark", peak, `${count(peak)}, after ${formatTime(peakNs - firstNs)}`),
    makeCard("Never freed", leaks, count(leaks)),
    makeCard(within === 1 ? "Temporary" : `Temporary, of the last ${within}`, temporary, count(temporary)),
    makeCard("All allocated", total, `${count(total)}, ${many(frees, "free")}`),
  ];
  if (resident) {
    const files = `${formatBytes(resident.files)} of it files: interpreter, libraries`;
    cards.push(makeCard("Resident set, at most", { bytes: resident.peak }, files));
  }
  if (reserved) cards.push(makeCard("Reserved, not in use", reserved, `${many(reserved.count, "range")} of address space`));
  return cards;
}
