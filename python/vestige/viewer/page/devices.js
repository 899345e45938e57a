// Devices: a group for each with a lane for each of its streams, and beneath threads the calls that they made of devices'
// runtimes. What is selected has arrows from the call to what came from it.

export class Devices {
  constructor(app) {
    this.app = app;
    this.groups = new Map(); // trace -> devices that did something
  }

  /** Asks which lanes a trace has. */
  async load({ trace, devices, devices_not_followed: isLive }) {
    const { lanes, timeline, stage, banners } = this.app;
    if (isLive) banners.show(`live${trace}`, "What devices did is not shown while a recording is followed. Open the file again when it has ended.");
    if (!devices || this.groups.has(trace)) return;
    const told = await lanes.load(trace, "devices");
    for (const lane of told.lanes) lane.title = titleOf(lane);
    this.groups.set(trace, told.devices.filter((device) => told.lanes.some((lane) => lane.device === device.number)));
    timeline.setDevices(trace, this.groups.get(trace), told.lanes);
    stage.arranged();
  }

  lane(trace, number) {
    return this.app.lanes.list("devices", trace)[number] ?? null;
  }

  device(trace, number) {
    return this.groups.get(trace)?.find((one) => one.number === number) ?? null;
  }

  /** "cuda 0, stream 7", or the thread whose calls a lane has. */
  placeOf(trace, lane) {
    const { timeline } = this.app;
    if (!lane.device) return timeline.thread(trace, lane.thread)?.thread.name ?? "a thread that is not in the trace";
    const device = this.device(trace, lane.device);
    return `${device ? labelOf(device) : `device ${lane.device}`}, ${lane.title}`;
  }

  /** Where the arrows of what is selected begin and end: [{from, to}], each a lane, a row and a time. */
  arrows() {
    const { items, view } = this.app, { shown } = items;
    if (shown?.kind !== "devices" || view.span?.kind !== "devices") return [];
    const { trace, found } = shown;
    const pairs = found.launch ? [[found.launch, found]] : found.linked.map((one) => [found, one]);
    const place = ({ lane, row, start_ns: time }) => ({ lane, row, time });
    return pairs.map(([from, to]) => ({ trace, from: place(from), to: place(to) }));
  }
}

/** What a lane is called in the gutter. */
function titleOf({ device, stream, name }) {
  return device ? name || (stream < 0 ? "no stream" : `stream ${stream}`) : "runtime calls";
}

/** As tools call it: "cuda 0". */
export function labelOf({ platform, ordinal }) {
  return `${platform || "device"} ${ordinal}`;
}
