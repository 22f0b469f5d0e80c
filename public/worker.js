// A run's worker.
import start from "./capo-worker.js?v=HASH";

// Named in the module's own words, so that it refuses a page of another version.
self.capoBuild = "./capo-web_bg.wasm?v=HASH";

// The page posts the study at once. Until the module listens, messages wait here.
const early = [];
const keep = (event) => {
  event.stopImmediatePropagation();
  early.push(event);
};
self.addEventListener("message", keep);

try {
  await start({ module_or_path: new URL("./capo-worker_bg.wasm?v=HASH", import.meta.url) });
  self.removeEventListener("message", keep);
  for (const { data, ports } of early) {
    self.dispatchEvent(new MessageEvent("message", { data, ports: [...ports] }));
  }
} catch (error) {
  // A rejected promise would stay in here; this reaches the page as the worker's `error` event.
  self.reportError(error);
}
