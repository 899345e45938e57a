"use strict";
// The data, and what is shown of it now. The files of this folder are one script, in the order of page.html.
/** @type {(id: string) => any} */
const $ = id => document.getElementById(id);
const data = JSON.parse($("data").textContent);
/** @type {Record<string, string>} */
const MODES = {peak: "Peak", leaks: "Never freed", temporary: "Temporary", total: "All allocated", reserved: "Reserved"};
const ROW = 21, TABLE_ROWS = 50;
let process, tree, mode = "peak", table = "lines", root = 0, selected = 0, query = "", boxes = new Map();
