// Compiles an archive of modules in Node, with the Python that the page will run:
//     node bytecode.mjs PYODIDE_FOLDER ARCHIVE TARGET "left out"
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, archive, target, leftOut] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`).href);
const python = await loadPyodide();
python.FS.writeFile("/tmp/from.zip", readFileSync(archive));
python.FS.writeFile("/tmp/bytecode.py", readFileSync(new URL("bytecode.py", import.meta.url)));
python.runPython("import sys; sys.path.insert(0, '/tmp')");
const n = python.pyimport("bytecode").compile_archive("/tmp/from.zip", "/tmp/to.zip", leftOut);
if (n === 0) throw new Error(`${archive} has no modules`);
writeFileSync(target, python.FS.readFile("/tmp/to.zip"));
