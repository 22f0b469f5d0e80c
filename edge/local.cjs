// Runs the built worker on this machine, on the runtime that Cloudflare runs it on. Its argument is a JSON object: `build`,
// `page` and `state` (folders; `page` may be the origin of another host of it, too, from which files of any size come), `port`,
// `vars` (in place of those of wrangler.json and .dev.vars), and `upstream`, the origin that the worker takes for its own.

const fs = require("node:fs");
const path = require("node:path");
const { Miniflare } = require("miniflare");
const worker = require("./wrangler.json");

const { build, page, state, port, vars = {}, upstream } = JSON.parse(process.argv[2]);
const secrets = path.join(__dirname, ".dev.vars");
const lines = fs.existsSync(secrets) ? fs.readFileSync(secrets, "utf8").matchAll(/^(\w+) *= *"?([^"\n]*)"?$/gm) : [];
const local = Object.fromEntries([...lines].map(([, name, value]) => [name, value]));
const { binding, html_handling, not_found_handling, run_worker_first } = worker.assets;
const classes = worker.migrations.flatMap((migration) => migration.new_sqlite_classes);
const objects = worker.durable_objects.bindings.map(({ name, class_name }) => [
  name,
  { className: class_name, useSQLite: classes.includes(class_name) },
]);
const assets = page.startsWith("http://")
  ? { serviceBindings: { [binding]: { external: { address: new URL(page).host, http: {} } } } }
  : {
      assets: {
        directory: page,
        binding,
        routerConfig: { has_user_worker: true, invoke_user_worker_ahead_of_assets: run_worker_first },
        assetConfig: { html_handling, not_found_handling },
      },
    };

const miniflare = new Miniflare({
  host: "127.0.0.1",
  // Nothing is asked of Cloudflare's own servers.
  cf: false,
  port,
  upstream,
  compatibilityDate: worker.compatibility_date,
  compatibilityFlags: worker.compatibility_flags,
  modulesRoot: build,
  modules: [
    { type: "ESModule", path: path.join(build, "index.js") },
    { type: "CompiledWasm", path: path.join(build, "index_bg.wasm") },
  ],
  bindings: { ...worker.vars, ...local, ...vars },
  durableObjects: Object.fromEntries(objects),
  durableObjectsPersist: state,
  ...assets,
});
miniflare.ready.then((url) => console.log(`listening on ${url.origin}`));
// What is said to nobody ends nothing.
for (const output of [process.stdout, process.stderr]) {
  output.on("error", () => {});
}
// Miniflare's own listeners would call an end an error.
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.removeAllListeners(signal);
  process.once(signal, () => miniflare.dispose().then(() => process.exit()));
}
