// The part of the page that a browser keeps while no tab is open. It stores nothing: no page and no answer, so that
// nothing of an agent is read from a phone on which its user has logged out.
"use strict";

const SESSION = /^[0-9a-f]{8}$/;
const RUN = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
const ICON = "/web/static/icon-192.png";
const BADGE = "/web/static/badge-96.png";
const OFFLINE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Not reachable · sm</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; }
main { max-width: 28rem; padding: 2rem 1.25rem; }
h1 { font-size: 1.5rem; font-weight: 600; }
</style>
</head>
<body>
<main>
<h1>The server is not reachable</h1>
<p>This device has no connection to sm: it is offline, away from your private network, or sm does not run.</p>
<p><a href="">Try again</a></p>
</main>
</body>
</html>`;

self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    await self.registration.navigationPreload?.enable();
    await self.clients.claim();
  })());
});

// The browser's own request is used, never one of this worker: that would pass for one of this server's pages even
// where another site has opened the page. Where a browser cannot make it beside the worker it gets the page alone.
self.addEventListener("fetch", (event) => {
  const { mode, method } = event.request;
  if (mode !== "navigate" || method !== "GET" || !self.registration.navigationPreload) return;
  event.respondWith(event.preloadResponse.then((answer) => answer || fetch(event.request)).catch(offline));
});

function offline() {
  const headers = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
  };
  return new Response(OFFLINE, { status: 503, headers });
}

self.addEventListener("push", (event) => {
  let told = {};
  try { told = event.data.json(); } catch { /* a service's own test: it is shown all the same, as browsers demand */ }
  const options = { body: told.text || "", icon: ICON, badge: BADGE, data: { session: told.session, run: told.run } };
  event.waitUntil(self.registration.showNotification(told.title || "sm", options));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const { session, run } = event.notification.data;
  event.waitUntil(show(SESSION.test(session) ? `/web/sessions/${session}` : RUN.test(run || "") ? `/web/runs/${run}` : "/"));
});

async function show(path) {
  const tabs = await self.clients.matchAll({ type: "window" });
  const there = tabs.find((tab) => new URL(tab.url).pathname === path);
  return there ? there.focus() : self.clients.openWindow(path);
}
