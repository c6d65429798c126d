// Python runs here, so that the page stays responsive and can end what takes too long.
import { loadPyodide } from "./pyodide.mjs";

const bytesOf = async (name) => {
  const answer = await fetch(new URL(name, import.meta.url));
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return new Uint8Array(await answer.arrayBuffer());
};

const start = async () => {
  const [python, modules, glue] = await Promise.all([
    loadPyodide({ env: { TRACEPOINT_PURE: "1", HOME: "/tmp" } }),
    bytesOf("tracepoint.zip"),
    bytesOf("pasted.py"),
  ]);
  python.FS.writeFile("/tmp/tracepoint.zip", modules);
  python.FS.writeFile("/tmp/pasted_glue.py", glue);
  python.runPython("import sys; sys.path[:0] = ['/tmp', '/tmp/tracepoint.zip']");
  return python.pyimport("pasted_glue").simulate;
};

const ready = start();
ready.then(
  () => postMessage({ kind: "ready" }),
  (error) => postMessage({ kind: "failed", text: String(error.message ?? error) }),
);

onmessage = async ({ data }) => {
  try {
    const simulate = await ready;
    postMessage({ kind: "result", answer: JSON.parse(simulate(data.text, data.abi, data.values)) });
  } catch (error) {
    postMessage({ kind: "failed", text: String(error.message ?? error) });
  }
};
