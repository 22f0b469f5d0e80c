
// A report: it unpacks what lies in this file and starts the module. A file has no paths below it, so the page shown stands
// behind `#`, and the module is handed a location and a history that say so.
{
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
    if (!event.isTrusted) return;
    if (location.hash && !location.hash.startsWith("#/")) event.stopImmediatePropagation();
    else moveTo(shown());
  });
  addEventListener(
    "click",
    (event) => {
      const link = event.composedPath().find((node) => node instanceof HTMLAnchorElement);
      const path = link?.getAttribute("href");
      if (!path?.startsWith("/") || event.button !== 0 || event.altKey) return;
      event.preventDefault();
      if (event.ctrlKey || event.metaKey || event.shiftKey) {
        open(`#${path}`);
        return;
      }
      past.pushState(null, "", path);
      dispatchEvent(new PopStateEvent("popstate"));
      if (!link.hasAttribute("data-noscroll")) scrollTo(0, 0);
    },
    true,
  );

  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = (module, imports) => {
    for (const functions of Object.values(imports)) {
      for (const name of Object.keys(functions)) {
        if (name.startsWith("__wbg_location_")) functions[name] = () => place;
        if (name.startsWith("__wbg_history_")) functions[name] = () => past;
      }
    }
    return instantiate(module, imports);
  };

  const unpacked = (element) => {
    const bytes = Uint8Array.from(atob(element.textContent), (character) => character.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
  };

  try {
    moveTo(shown());
    for (const journal of journals) journal.textContent = await unpacked(journal).text();
    await __wbg_init({ module_or_path: await unpacked(document.getElementById("module")).arrayBuffer() });
    document.getElementById("module").remove();
    document.getElementById("boot").remove();
  } catch (error) {
    console.error(error);
    document.getElementById("boot-problem").hidden = false;
  }
}
