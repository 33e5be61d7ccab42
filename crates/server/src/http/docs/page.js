"use strict";
// Filters the calls by what is typed. Without it the page is whole, only longer to look through.
const box = document.getElementById("filter");
const found = document.getElementById("found");
const entries = [...document.querySelectorAll("[data-words]")];
const groups = [...document.querySelectorAll("[data-group]")];

function show() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const entry of entries) {
    entry.hidden = !words.every((word) => entry.dataset.words.includes(word));
  }
  for (const group of groups) {
    group.hidden = !group.querySelector("[data-words]:not([hidden])");
  }
  const count = entries.filter((entry) => entry.tagName === "ARTICLE" && !entry.hidden).length;
  found.textContent = words.length ? `${count} found` : "";
}

box.addEventListener("input", show);
box.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    box.value = "";
    show();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== box && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    box.focus();
  }
});
// A link to something that is filtered out shows it.
window.addEventListener("hashchange", () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.closest("[hidden]")) {
    box.value = "";
    show();
    target.scrollIntoView();
  }
});
box.closest("label").hidden = false;
