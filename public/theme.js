// Applies the theme that a person chose before anything is drawn: a classic script in the head, because a
// module would run after the first paint. Without a choice the styles follow the system.
try {
  const theme = localStorage.getItem("capo.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is switched off for this site; the system's theme applies.
}

// The words of the first page stand in `index.html`: they are shown while the module comes, where they belong.
const base = document.querySelector("meta[name=capo-base]")?.content;
if (location.pathname === base) document.documentElement.dataset.first = "";
