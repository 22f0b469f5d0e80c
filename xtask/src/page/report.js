
// A report: it unpacks what lies in this file and starts the module. A file has no paths below it, so the page shown stands
// behind `#`, and the module is handed a location and a history that say so.
try {
  // Only addresses within the report begin so; it is never asked for.
  const ORIGIN = "http://report.invalid";
  const journals = [...document.querySelectorAll("script[data-journal]")];
  const first =
    journals.length > 1 ? `/compare?runs=${journals.map((_, place) => place + 1).join(",")}` : "/run/1/result";

  const place = { origin: ORIGIN, reload: () => location.reload(), assign() {}, replace() {} };
  const moveTo = (path) => {
    const { pathname, search, hash, href } = new URL(path, ORIGIN);
    Object.assign(place, { pathname, search, hash, href });
  };
  const shown = () => (location.hash.startsWith("#/") ? location.hash.slice(1) : first);
  const go = (how) => (_state, _title, path) => {
    moveTo(path);
    try {
      history[how](null, "", `#${path}`);
    } catch {
      // Where the file is shown inside of something else, the address stays as it is.
    }
  };
  const past = { pushState: go("pushState"), replaceState: go("replaceState") };

  // Before the module hears of them.
  addEventListener("popstate", (event) => {
    if (location.hash && !location.hash.startsWith("#/")) event.stopImmediatePropagation();
    else moveTo(shown());
  });

  // Links lead behind `#`, however they are opened: in another tab, from their menu. Of a plain click the module is shown
  // where it leads within the report.
  const linked = (event) => {
    const link = event.composedPath().find((node) => node instanceof HTMLAnchorElement);
    const path = link?.getAttribute("href")?.replace(/^#(?=\/)/, "");
    if (!path?.startsWith("/")) return {};
    link.setAttribute("href", `#${path}`);
    return { link, path };
  };
  for (const kind of ["pointerover", "focusin"]) addEventListener(kind, linked, true);
  addEventListener(
    "click",
    (event) => {
      const { link, path } = linked(event);
      if (!link || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      link.setAttribute("href", ORIGIN + path);
      setTimeout(() => {
        if (link.getAttribute("href") === ORIGIN + path) link.setAttribute("href", `#${path}`);
      });
    },
    true,
  );

  const unpacked = (element) => {
    const bytes = Uint8Array.from(atob(element.textContent), (character) => character.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
  };

  // By the names that wasm-bindgen gives what the module asks of its window.
  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = (module, imports) => {
    for (const [prefix, given] of [["__wbg_location_", place], ["__wbg_history_", past]]) {
      let found = 0;
      for (const functions of Object.values(imports)) {
        for (const name of Object.keys(functions).filter((name) => name.startsWith(prefix))) {
          functions[name] = () => given;
          found += 1;
        }
      }
      if (!found) throw new Error(`the module imports no ${prefix}…`);
    }
    return instantiate(module, imports);
  };

  moveTo(shown());
  for (const journal of journals) journal.textContent = await unpacked(journal).text();
  await __wbg_init({ module_or_path: await unpacked(document.getElementById("module")).arrayBuffer() });
  document.getElementById("module").remove();
  document.getElementById("boot").remove();
} catch (error) {
  console.error(error);
  document.getElementById("boot-reading").hidden = true;
  const problem = document.getElementById("boot-problem");
  if ("WebAssembly" in globalThis && "DecompressionStream" in globalThis) {
    problem.textContent = `The report does not read: ${error}. The file may not be whole; ask for it once more.`;
  }
  problem.hidden = false;
}
