// Reads the data that `vestige view --html` puts into a page: gzip of a container with JSON and pieces of bytes.

/** Decodes the text of the data's element to {info, traces, piece(offset, size)}. */
export async function readData(text) {
  const zipped = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([zipped]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = await new Response(stream).arrayBuffer();
  const length = new DataView(bytes).getUint32(0, true);
  const json = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
  const base = Math.ceil((4 + length) / 8) * 8;
  return { ...json, piece: (offset, size) => new Uint8Array(bytes, base + offset, size) };
}

/** Returns the first place of a sorted column whose value is not less than `value`. */
export function lowerBound(column, value) {
  let low = 0, high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
