// Starts `tracepoint server` and lets VS Code speak to it.

"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function activate() {
  const [command, ...args] = vscode.workspace.getConfiguration("tracepoint").get("command");
  const selector = ["c", "cpp", "python"].map((language) => ({ scheme: "file", language }));
  client = new LanguageClient("tracepoint", "tracepoint", { command, args }, { documentSelector: selector });
  return client.start();
}

function deactivate() {
  return client ? client.stop() : undefined;
}

module.exports = { activate, deactivate };
