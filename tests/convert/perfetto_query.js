// node perfetto_query.js FOLDER TRACE SQL...
// Runs Perfetto's trace_processor, as WebAssembly in FOLDER, over a trace; prints the rows of each query as a line of JSON.
// The worker of its UI (engine_bundle.js) does the work; it is given a port, and answers in the protocol TraceProcessorRpc.
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [folder, trace, ...queries] = process.argv.slice(2);
const RPC = { message: 1, sequence: 1, request: 2, response: 3, append: 1, finish: 2, query: 3 };
const CHUNK = 16 << 20;

// What a worker of a browser has and Node has not.
function pretendToBeAWorker() {
  const file = (url) => fs.readFileSync(path.join(folder, path.basename(String(url))));
  globalThis.self = globalThis;
  globalThis.importScripts = () => {};
  globalThis.location = { href: "http://localhost/engine_bundle.js", search: "" };
  globalThis.WorkerGlobalScope = function () {};
  globalThis.fetch = async (url) => new Response(file(url), { headers: { "Content-Type": "application/wasm" } });
  globalThis.XMLHttpRequest = class {
    open(method, url) {
      this.url = url;
    }
    send() {
      this.response = file(this.url);
      this.status = 200;
      this.onload?.();
    }
  };
  console.warn = () => {};
}

function varint(number) {
  const out = [];
  for (let n = BigInt(number); ; n >>= 7n) {
    out.push(Number(n & 127n) | (n > 127n ? 128 : 0));
    if (n <= 127n) return Buffer.from(out);
  }
}
// process.exit() would cut off what process.stdout has not yet written to a pipe.
function print(text) {
  const data = Buffer.from(text);
  for (let at = 0; at < data.length; ) at += fs.writeSync(1, data, at);
}
const numberField = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytesField = (field, data) => Buffer.concat([varint((field << 3) | 2), varint(data.length), data]);

function readVarint(data, at) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = data[at++];
    if (byte === undefined) return [null, at];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [value, at];
  }
}

function* fieldsOf(data) {
  for (let at = 0; at < data.length; ) {
    let key, value;
    [key, at] = readVarint(data, at);
    const kind = Number(key & 7n);
    if (kind === 0) {
      [value, at] = readVarint(data, at);
    } else {
      let size = kind === 1 ? 8n : 4n;
      if (kind === 2) [size, at] = readVarint(data, at);
      value = data.subarray(at, at + Number(size));
      at += Number(size);
    }
    yield [Number(key >> 3n), value];
  }
}

// One batch of a QueryResult: the types of its cells, and their values by type.
function* cellsOf(batch) {
  const numbers = [];
  const reals = [];
  let texts = [];
  let types = [];
  for (const [field, value] of fieldsOf(batch)) {
    if (field === 1) types = [...value];
    if (field === 2) for (let at = 0, n; at < value.length; numbers.push(Number(BigInt.asIntN(64, n)))) [n, at] = readVarint(value, at);
    if (field === 3) for (let at = 0; at < value.length; at += 8) reals.push(value.readDoubleLE(at));
    if (field === 5) texts = value.toString().split("\0");
  }
  for (const type of types) yield { 2: numbers, 3: reals, 4: texts }[type]?.shift() ?? null;
}

async function main() {
  const ownProcess = process;
  pretendToBeAWorker();
  // With it, the module would take itself for a program of Node.
  delete globalThis.process;
  vm.runInThisContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"));
  globalThis.process = ownProcess;

  let pending = Buffer.alloc(0);
  let answered = () => {};
  const port = {
    postMessage(data) {
      pending = Buffer.concat([pending, Buffer.from(data)]);
      for (;;) {
        if (!pending.length) return;
        const [, afterKey] = readVarint(pending, 0);
        const [size, start] = readVarint(pending, afterKey);
        if (size === null || pending.length < start + Number(size)) return;
        const answer = Object.fromEntries(fieldsOf(pending.subarray(start, start + Number(size))));
        pending = pending.subarray(start + Number(size));
        answered(answer);
      }
    },
  };
  let sequence = 0;
  const send = (request, ...more) => {
    const body = Buffer.concat([numberField(RPC.sequence, ++sequence), numberField(RPC.request, request), ...more]);
    port.onmessage({ data: new Uint8Array(bytesField(RPC.message, body)) });
  };
  const query = (sql) =>
    new Promise((done, failed) => {
      const names = [];
      const cells = [];
      answered = (answer) => {
        if (answer[RPC.response] !== BigInt(RPC.query)) return;
        for (const [field, value] of fieldsOf(answer[203])) {
          if (field === 1) names.push(value.toString());
          if (field === 2) failed(new Error(value.toString()));
          if (field !== 3) continue;
          cells.push(...cellsOf(value));
          if (![...fieldsOf(value)].some(([number, flag]) => number === 6 && flag)) continue;
          const rows = [];
          for (let at = 0; at < cells.length; at += names.length) rows.push(cells.slice(at, at + names.length));
          done(rows);
        }
      };
      send(RPC.query, bytesField(103, bytesField(1, Buffer.from(sql))));
    });

  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  while (!globalThis.onmessage) await wait(20);
  globalThis.onmessage({ data: port });
  while (!port.onmessage) await wait(20);
  // Nothing says when the module is compiled.
  await wait(2500);
  const data = fs.readFileSync(trace);
  for (let at = 0; at < data.length; at += CHUNK) send(RPC.append, bytesField(101, data.subarray(at, at + CHUNK)));
  send(RPC.finish);
  for (const sql of queries) print(JSON.stringify(await query(sql)) + "\n");
}

main().then(
  () => process.exit(0),
  (error) => {
    process.stderr.write(`${error}\n`);
    process.exit(1);
  },
);
