// The curve of live bytes over time, with the resident set and a cursor.

let cursor = -1;

function drawUsage() {
  const canvas = $("usage"), points = process.points, ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight, style = getComputedStyle(document.documentElement);
  const color = name => style.getPropertyValue(name).trim();
  const left = 74, bottom = 24, top = 22, right = 14;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const g = canvas.getContext("2d");
  g.scale(ratio, ratio);
  g.font = "12px system-ui, sans-serif";
  g.clearRect(0, 0, width, height);
  if (!points.length) return;
  const end = Math.max(points[points.length - 1][2], 1);
  const resident = process.residentPoints || [];
  const most = Math.max(process.peak.bytes, ...resident.map(point => point[1]), 1);
  const x = ns => left + (width - left - right) * ns / end;
  const y = bytes => height - bottom - (height - bottom - top) * bytes / (most);
  g.strokeStyle = color("--edge");
  g.fillStyle = color("--faint");
  g.textAlign = "right";
  g.textBaseline = "middle";
  for (let i = 0; i <= 4; i++) {
    const bytes = most * i / 4;
    g.beginPath(); g.moveTo(left, y(bytes) + .5); g.lineTo(width - right, y(bytes) + .5); g.stroke();
    g.fillText(size(bytes), left - 8, y(bytes));
  }
  g.textBaseline = "alphabetic";
  for (let i = 0; i <= 5; i++) {
    g.textAlign = i === 0 ? "left" : i === 5 ? "right" : "center";
    g.fillText(time(Math.round(end * i / 5)), x(end * i / 5), height - 6);
  }
  g.beginPath();
  g.moveTo(x(0), y(0));
  let last = 0;
  for (const [maxAt, max, lastAt, then] of points) {
    g.lineTo(x(maxAt), y(last));
    g.lineTo(x(maxAt), y(max));
    g.lineTo(x(lastAt), y(max));
    g.lineTo(x(lastAt), y(then));
    last = then;
  }
  g.strokeStyle = color("--accent");
  g.lineWidth = 1.5;
  g.stroke();
  g.lineTo(x(end), y(0));
  g.fillStyle = color("--area");
  g.fill();
  if (resident.length) {
    g.beginPath();
    for (const [maxAt, max, lastAt, then] of resident) {
      g.lineTo(x(Math.max(maxAt, 0)), y(max));
      g.lineTo(x(Math.max(lastAt, 0)), y(then));
    }
    g.strokeStyle = g.fillStyle = color("--resident");
    g.stroke();
    const [at, bytes] = resident[resident.length - 1].slice(2);
    g.textAlign = "right";
    g.textBaseline = "middle";
    g.fillText("resident", x(Math.min(at, end)), Math.max(y(bytes) - 10, 8));
  }
  const peakX = x(process.peak_ns - process.firstNs);
  g.strokeStyle = g.fillStyle = color("--peak");
  g.setLineDash([4, 3]);
  g.beginPath(); g.moveTo(peakX, y(0)); g.lineTo(peakX, y(process.peak.bytes)); g.stroke();
  g.setLineDash([]);
  g.beginPath(); g.arc(peakX, y(process.peak.bytes), 4, 0, 7); g.fill();
  g.textAlign = peakX > width / 2 ? "right" : "left";
  g.textBaseline = "middle";
  g.fillText("peak " + size(process.peak.bytes), peakX + (peakX > width / 2 ? -2 : 2), y(process.peak.bytes) - 13);
  if (cursor >= 0 && cursor < points.length) {
    const [at, bytes] = points[cursor];
    g.fillStyle = color("--text");
    g.fillRect(x(at) - .5, top, 1, height - bottom - top);
    g.beginPath(); g.arc(x(at), y(bytes), 3, 0, 7); g.fill();
    const seen = resident.findLast(point => point[0] <= at);
    $("usage-told").textContent = size(bytes) + (seen ? ", " + size(seen[1]) + " resident," : "") + " after " + time(at);
  } else {
    $("usage-told").textContent = "";
  }
  canvas.onpointermove = event => {
    const at = (event.offsetX - left) / (width - left - right) * end;
    let low = 0, high = points.length - 1;
    while (low < high) {
      const middle = low + high >> 1;
      if (points[middle][2] < at) low = middle + 1; else high = middle;
    }
    cursor = low;
    drawUsage();
  };
}
$("usage").addEventListener("pointerleave", () => { cursor = -1; drawUsage(); });
$("usage").addEventListener("keydown", event => {
  const step = {ArrowLeft: -1, ArrowRight: 1, PageUp: -50, PageDown: 50}[event.key];
  if (event.key === "Home") cursor = 0;
  else if (event.key === "End") cursor = process.points.length - 1;
  else if (step) cursor = Math.min(Math.max(cursor + step, 0), process.points.length - 1);
  else return;
  event.preventDefault();
  drawUsage();
});
