// Starts the page: loads the module, says so plainly when that cannot work, and keeps the shell for offline use.

// Reads the browser's support off whether it asks for the worker's type. The address cannot be parsed, so no
// worker is ever started or fetched.
function hasModuleWorkers() {
  let asked = false;
  try {
    new Worker("http://[", {
      get type() {
        asked = true;
        return "module";
      },
    });
  } catch {
    // Always: see the address.
  }
  return asked;
}

function show(text) {
  const problem = document.getElementById("boot-problem");
  if (!problem) return;
  if (text) problem.textContent = text;
  problem.hidden = false;
}

// Whether the page stands.
async function startPage() {
  if (typeof WebAssembly !== "object" || typeof Worker !== "function" || !hasModuleWorkers()) {
    show();
    return false;
  }
  try {
    // Not a static import: that would fail before anything could be said about it.
    const { default: start } = await import("./capo-web.js?v=HASH");
    await start({ module_or_path: new URL("./capo-web_bg.wasm?v=HASH", import.meta.url) });
    document.getElementById("boot")?.remove();
    return true;
  } catch (error) {
    console.error(error);
    // A module that does not compile uses instructions this browser does not have yet.
    if (error instanceof WebAssembly.CompileError) show();
    else show("The page could not be loaded. Nothing that is stored was changed. Reload to try again.");
    return false;
  }
}

function warn(reason) {
  // An older version may be kept.
  const what = navigator.serviceWorker.controller
    ? "The newer version of this page is not kept in this browser, which goes on with the one that is"
    : "The page is not kept in this browser, so that it needs the network to open";
  console.warn(`${what}: ${reason}`);
}

// The module listens for `capo-update` (a new version waits) and dispatches `capo-accept-update` when the person
// takes it: nobody is moved to another version in the middle of a run.
async function keepShell(pageStands) {
  if (!("serviceWorker" in navigator)) return;
  const container = navigator.serviceWorker;
  let registration;
  let controlled = container.controller !== null;
  let accepted = false;

  const accept = () => {
    if (accepted) return;
    accepted = true;
    if (registration?.waiting) registration.waiting.postMessage({ type: "activate" });
    else location.reload();
  };
  const announce = () => {
    // A page that does not stand can ask nobody, and the new version may be the one that works.
    if (pageStands) window.dispatchEvent(new CustomEvent("capo-update"));
    else accept();
  };
  const announceWhenInstalled = (worker) => {
    worker?.addEventListener("statechange", () => {
      if (worker.state === "installed" && container.controller) announce();
    });
  };

  window.addEventListener("capo-accept-update", accept);
  container.addEventListener("controllerchange", () => {
    if (accepted) location.reload();
    // Another tab took the new version, and what this one has not loaded yet is no longer kept. Without a controller
    // the person cleared the site data, and there is no newer one.
    else if (controlled && container.controller) announce();
    controlled = container.controller !== null;
  });
  container.addEventListener("message", ({ data }) => {
    if (data?.type === "not-kept") warn(data.reason);
  });
  registration = await container.register(new URL("./sw.js", import.meta.url), { updateViaCache: "none" });
  registration.addEventListener("updatefound", () => announceWhenInstalled(registration.installing));
  announceWhenInstalled(registration.installing);
  if (registration.waiting && container.controller) announce();
}

const pageStands = await startPage();
// After the page: it needs the network now, the shell only later.
keepShell(pageStands).catch(warn);
