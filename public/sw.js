// Keeps the shell, so that the page opens without a network. `cargo xtask stamp` writes the two constants.
const VERSION = "SHELL_VERSION";
// Path below the scope → SHA-256 of the content, in hexadecimal digits. The empty path is the page.
const FILES = SHELL_FILES;

// One host may hold the page below several paths; each has its own caches.
const PREFIX = `capo-shell:${new URL(self.registration.scope).pathname}:`;
const CACHE = PREFIX + VERSION;
const address = (path) => new URL(path, self.registration.scope).href;
const ADDRESSES = new Set(Object.keys(FILES).map(address));
// What a server behind the page answers itself, beside the page's routes.
const OF_SERVER = ["api/", "healthz", "readyz", "metrics"].map(address);

// While a host is being updated it may answer with files of two versions. Only what was built together is kept.
async function fetchChecked(path, expected) {
  const response = await fetch(address(path), { cache: "no-cache" });
  if (!response.ok) throw new Error(`${path || "the page"}: status ${response.status}`);
  const digest = await crypto.subtle.digest("SHA-256", await response.clone().arrayBuffer());
  const found = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found !== expected) throw new Error(`${path || "the page"}: not the content of this version`);
  return response;
}

// File by file: the page may be starting a run beside it, and all files at once would keep every core busy.
async function install() {
  // A host that went back to an older version installs again what may still be in use.
  const isNew = !(await caches.has(CACHE));
  const cache = await caches.open(CACHE);
  try {
    for (const [path, hash] of Object.entries(FILES)) {
      if (!(await cache.match(address(path)))) await cache.put(address(path), await fetchChecked(path, hash));
    }
    if (!(await caches.has(CACHE))) throw new Error("another version took this one's place");
  } catch (error) {
    if (isNew) await caches.delete(CACHE);
    throw error;
  }
}

async function activate() {
  // What another version is filling at this moment stays; it clears up when its time comes.
  const { installing, waiting } = self.registration;
  if (!installing && !waiting) {
    const names = await caches.keys();
    const old = names.filter((name) => name.startsWith(PREFIX) && name !== CACHE);
    await Promise.all(old.map((name) => caches.delete(name)));
  }
  await self.clients.claim();
}

async function answer(request, key) {
  const cache = await caches.open(CACHE);
  return (await cache.match(key)) ?? fetch(request);
}

// Says to the pages why nothing is kept: their consoles do not show what is written to a worker's.
async function tell(error) {
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  for (const page of pages) page.postMessage({ type: "not-kept", reason: String(error) });
  throw error;
}

self.addEventListener("install", (event) => event.waitUntil(install().catch(tell)));
self.addEventListener("activate", (event) => event.waitUntil(activate()));
self.addEventListener("message", (event) => {
  if (event.data?.type === "activate") self.skipWaiting();
});
self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin) return;
  if (OF_SERVER.some((start) => url.href.startsWith(start))) return;
  if (ADDRESSES.has(url.href)) event.respondWith(answer(request, url.href));
  // A route of the page: its last part is no file name.
  else if (request.mode === "navigate" && !url.pathname.split("/").at(-1).includes(".")) {
    event.respondWith(answer(request, address("")));
  }
});
