// Puts the page together, once all the rest is there.

function tabs(id, names, chosen, change) {
  $(id).replaceChildren(...Object.entries(names).map(([value, title]) => {
    const made = element("label"), input = element("input");
    input.type = "radio";
    input.name = id;
    input.value = value;
    input.checked = value === chosen;
    input.addEventListener("change", () => change(value));
    made.append(input, title);
    return made;
  }));
}

if (!data.processes.some(one => one.reserved)) delete MODES.reserved;
tabs("modes", MODES, mode, value => { mode = value; root = 0; showFlame(); showTable(); });
tabs("tables", {lines: "Lines", stacks: "Stacks", sizes: "Sizes"}, table, value => { table = value; showTable(); });
data.processes.forEach((one, i) => {
  const option = element("option", one.pid + "  " + commandOf(one));
  option.value = i;
  $("process").append(option);
});
$("process").hidden = data.processes.length < 2;
$("process").addEventListener("change", () => showProcess(+$("process").value));
const again = () => { drawUsage(); showFlame(); };
let width = window.innerWidth;
window.addEventListener("resize", () => { if (width !== window.innerWidth) { width = window.innerWidth; again(); } });
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
showProcess(0);
