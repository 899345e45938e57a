// Devices: a group for each device with a lane for each of its streams, and below each thread its calls of device
// runtimes. Arrows lead from a selected call to the activities that it launched.

export class Devices {
  constructor(app) {
    this.app = app;
    this.groups = new Map(); // trace -> devices with activities
  }

  /** Fetches the lanes of a trace. */
  async load({ trace, devices, devices_not_followed: isLive }) {
    const { lanes, timeline, stage, banners } = this.app;
    if (isLive) banners.show(`live${trace}`, "Activities of devices are not shown while a recording is followed. Open the file again after the recording has ended.");
    if (!devices || this.groups.has(trace)) return;
    const answer = await lanes.load(trace, "devices");
    for (const lane of answer.lanes) lane.title = titleOf(lane);
    this.groups.set(trace, answer.devices.filter((device) => answer.lanes.some((lane) => lane.device === device.number)));
    timeline.setDevices(trace, this.groups.get(trace), answer.lanes);
    stage.arranged();
  }

  lane(trace, number) {
    return this.app.lanes.list("devices", trace)[number] ?? null;
  }

  device(trace, number) {
    return this.groups.get(trace)?.find((one) => one.number === number) ?? null;
  }

  /** Returns "cuda 0, stream 7", or for calls the thread's name. */
  placeOf(trace, lane) {
    const { timeline } = this.app;
    if (!lane.device) return timeline.thread(trace, lane.thread)?.thread.name ?? "a thread that is not in the trace";
    const device = this.device(trace, lane.device);
    return `${device ? labelOf(device) : `device ${lane.device}`}, ${lane.title}`;
  }

  /** The arrows of the selected item: [{from, to}], each end a lane, a row and a time. */
  arrows() {
    const { items, view } = this.app, { shown } = items;
    if (shown?.kind !== "devices" || view.span?.kind !== "devices") return [];
    const { trace, found } = shown;
    const pairs = found.launch ? [[found.launch, found]] : found.linked.map((one) => [found, one]);
    const place = ({ lane, row, start_ns: time }) => ({ lane, row, time });
    return pairs.map(([from, to]) => ({ trace, from: place(from), to: place(to) }));
  }
}

/** Returns the name of a lane in the gutter. */
function titleOf({ device, stream, name }) {
  return device ? name || (stream < 0 ? "no stream" : `stream ${stream}`) : "runtime calls";
}

/** Returns the name that tools use: "cuda 0". */
export function labelOf({ platform, ordinal }) {
  return `${platform || "device"} ${ordinal}`;
}
