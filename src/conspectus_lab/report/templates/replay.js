"use strict";
(() => {
  // Opens whatever is closed around a place, and goes there.
  function reveal(id) {
    const place = id && document.getElementById(id);
    if (!place) return;
    for (let at = place; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    fill(place);
    const handle = place.querySelector("summary");
    if (handle) handle.focus({ preventScroll: true });
    place.scrollIntoView({ block: "start" });
  }

  // A text stands on the page once; where it left a second time it is shown while open.
  function fill(place) {
    const whole = place.dataset.whole && document.getElementById(place.dataset.whole);
    if (!whole) return;
    const shown = place.querySelector(".text");
    if (place.open && !shown) {
      place.querySelector(".whole").append(whole.querySelector(".text").cloneNode(true));
    } else if (!place.open && shown) shown.remove();
  }

  const named = () => decodeURIComponent(location.hash.slice(1));
  addEventListener("hashchange", () => reveal(named()));
  document.addEventListener("toggle", (event) => fill(event.target), true);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    // The same link again changes no address, and must still lead there.
    if (link && link.getAttribute("href") === location.hash) reveal(named());
    const all = event.target.closest("button[data-all]");
    if (all) {
      const open = all.getAttribute("aria-pressed") !== "true";
      for (const one of all.closest(".inside").querySelectorAll(".original")) one.open = open;
      all.setAttribute("aria-pressed", String(open));
      all.textContent = open ? all.dataset.close : all.dataset.all;
    }
  });

  // Paper: compactions open unless they are many, originals as they are.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll(".few details.compaction:not([open])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
  });

  for (const button of document.querySelectorAll("button[data-all]")) button.hidden = false;
  if (location.hash) reveal(named());
})();
