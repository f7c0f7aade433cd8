// What a browser offers besides showing the page: keep it as an app.
"use strict";

(() => {
  if (!("serviceWorker" in navigator)) return; // an address without https, or a private window
  navigator.serviceWorker.register("/web/static/worker.js", { scope: "/", updateViaCache: "none" }).catch(() => {});
})();
