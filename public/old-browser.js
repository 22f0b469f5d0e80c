// Runs only where modules are unknown, and is therefore written for old browsers.
document.addEventListener("DOMContentLoaded", function () {
  document.getElementById("boot-problem").hidden = false;
});
