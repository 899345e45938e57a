// Runs Perfetto's trace_processor (the browser worker `engine_bundle.js` in the directory given) under Node, and joins its
// RPC byte stream to stdin and stdout. Whatever the engine logs goes to stderr. It knows nothing of the messages it carries.
import { readFileSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import vm from 'node:vm';

const directory = process.argv[2];
console.log = console.info = console.warn = console.error; // stdout carries replies only
process.on('uncaughtException', (error) => { // without the bundle's source, which is one very long line
  console.error(error.stack);
  process.exit(1);
});

// What the worker takes from its browser: a place for its handler, and one synchronous request for its .wasm file.
const self = { location: { href: 'http://localhost/' } };
class LocalRequest {
  open(_method, name) { this.name = name; }
  send() { this.response = readFileSync(join(directory, this.name)); }
}

// The engine refuses to start where it sees Node's `process`, so that is passed as undefined.
const filename = join(directory, 'engine_bundle.js');
const names = ['self', 'WorkerGlobalScope', 'XMLHttpRequest', 'process'];
vm.compileFunction(readFileSync(filename, 'utf8'), names, { filename })(self, Object, LocalRequest, undefined);

const port = {
  postMessage(reply) {
    for (let done = 0; done < reply.length;) done += writeSync(1, reply, done);
  },
};
self.onmessage({ data: port });

setImmediate(() => { // the engine's start ends in a promise, which is settled before this
  const buffer = new Uint8Array(1 << 20);
  for (let size; (size = readSync(0, buffer)) > 0;) port.onmessage({ data: buffer.subarray(0, size) });
});
