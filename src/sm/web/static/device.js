// What a browser offers besides showing the page: keep it as an app, and show notifications while no page is open.
"use strict";

(() => {
  const WORKER = { scope: "/", updateViaCache: "none" };
  const sheet = document.getElementById("notify");
  const found = "serviceWorker" in navigator && navigator.serviceWorker.register("/web/static/worker.js", WORKER);
  if (found) found.catch(() => {});
  if (!sheet) return;
  const button = document.getElementById("notify-button");
  const state = document.getElementById("notify-state");
  let notified = false;

  function say(words, kind = "") {
    state.className = kind;
    state.textContent = words;
  }

  function show() {
    button.disabled = false;
    button.textContent = notified ? "Stop notifying this device" : "Notify this device";
  }

  const bytes = (text) =>
    Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));

  async function begin() {
    if ((await Notification.requestPermission()) !== "granted") {
      return "This browser does not allow it: allow notifications in its settings of this site.";
    }
    const answer = await fetch("/web/push");
    const told = await answer.json();
    if (!answer.ok) return told.hint ? `${told.error} (${told.hint})` : told.error;
    const { pushManager } = await navigator.serviceWorker.ready;
    await (await pushManager.getSubscription())?.unsubscribe(); // made for another server, or known to it no longer
    const made = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(told.key) });
    const { endpoint, keys } = made.toJSON();
    const problem = await window.smCall("PUT", "/web/push", { endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth } });
    if (problem) await made.unsubscribe();
    return problem;
  }

  async function end() {
    const problem = await window.smCall("DELETE", "/web/push");
    if (problem) return problem;
    const { pushManager } = await navigator.serviceWorker.ready;
    await (await pushManager.getSubscription())?.unsubscribe();
    return "";
  }

  button.addEventListener("click", async () => {
    button.disabled = true;
    say("…");
    let problem;
    try {
      problem = await (notified ? end() : begin());
    } catch (refused) {
      problem = `This browser refuses: ${refused.message}`;
    }
    if (!problem) notified = !notified;
    const done = notified ? "A test notification is on its way to this device." : "This device is not notified any more.";
    say(problem || done, problem ? "failed" : "done");
    show();
  });

  (async () => {
    if (!found || !("PushManager" in window) || !("Notification" in window)) {
      say("This browser has none for this page: they need https, and on an iPhone the page on the Home Screen.");
      return;
    }
    const { pushManager } = await navigator.serviceWorker.ready;
    const known = await pushManager.getSubscription().catch(() => null);
    notified = "notified" in sheet.dataset && Notification.permission === "granted" && known !== null;
    show();
  })();
})();
