// Keeps a page of sm true: what the server sends replaces what it changed, ages count on, and forms call the API.
"use strict";

(() => {
  const SILENCE_S = 8; // without a word from the server its picture counts as old
  const RETRY_MS = 2000;
  const body = document.body;
  const csrf = document.querySelector('meta[name="sm-csrf"]').content;
  let ahead = Number(body.dataset.now) - Date.now() / 1000; // the server's clock, against ours
  let heard = Date.now();
  let seen = body.dataset.seen;
  let lost = false;

  const now = () => Date.now() / 1000 + ahead;

  function duration(seconds) {
    const whole = Math.max(0, Math.floor(seconds));
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} min`;
    if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
    return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
  }

  // Chromium in the locale C calls its language en-US@posix, which is none to Intl; the chart's library asks by it.
  try { new Intl.NumberFormat(navigator.language); } catch { Object.defineProperty(navigator, "language", { value: "en-US" }); }

  const local = (at) => new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

  // --- what is alive ------------------------------------------------------------------------------------------------

  function tick() {
    for (const time of document.querySelectorAll("time[data-since]")) {
      const text = duration(now() - Number(time.dataset.since));
      if (time.textContent !== text) time.textContent = text;
    }
    for (const time of document.querySelectorAll("time[datetime]:not([data-since]):not([title])")) {
      time.title = time.dateTime;
      time.textContent = local(time.dateTime);
    }
    for (const option of document.querySelectorAll("option[data-began]:not([title])")) {
      option.title = option.dataset.began;
      option.textContent = option.textContent.replace(option.dataset.began, local(option.dataset.began));
    }
    showLink();
  }

  function showLink() {
    if (!body.dataset.live) return;
    const silent = (Date.now() - heard) / 1000;
    lost = lost || silent > SILENCE_S;
    const link = document.getElementById("link");
    const banner = document.getElementById("lost");
    const words = lost ? "no connection" : "live";
    if (link.textContent !== words) link.textContent = words;
    link.dataset.state = body.dataset.link = lost ? "lost" : "live";
    banner.hidden = !lost;
    if (lost) banner.textContent = `The server does not answer. This is how it was ${duration(silent)} ago.`;
  }

  function connect() {
    const url = new URL(body.dataset.live, location.href);
    if (seen) url.searchParams.set("seen", seen);
    const source = new EventSource(url);
    const word = (event) => {
      heard = Date.now();
      lost = false;
      if (event.lastEventId) body.dataset.seen = seen = event.lastEventId;
    };
    source.addEventListener("open", () => { heard = Date.now(); lost = false; showLink(); });
    source.addEventListener("beat", (event) => {
      word(event);
      ahead = Number(event.data) - Date.now() / 1000;
      showLink();
    });
    source.addEventListener("fleet", (event) => { word(event); place(event.data); });
    source.addEventListener("touched", (event) => { word(event); touched(); });
    source.addEventListener("error", () => {
      lost = true;
      showLink();
      source.close();
      setTimeout(again, RETRY_MS);
    });
  }

  async function again() {
    try {
      const answer = await fetch(location.href, { method: "HEAD", redirect: "manual", cache: "no-store" });
      if (answer.type === "opaqueredirect" || answer.status === 401 || answer.status === 403) {
        location.reload(); // this device is no longer let in: the page that says so
        return;
      }
    } catch { /* still away */ }
    connect();
  }

  let due = 0;
  function touched() {
    if (due) return;
    due = setTimeout(() => { due = 0; body.dispatchEvent(new CustomEvent("touched", { bubbles: true })); }, 400);
  }

  // --- the fleet ----------------------------------------------------------------------------------------------------

  function place(html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    const fresh = new Map();
    let order = null;
    for (const element of [...template.content.children]) {
      if (element.id === "order") order = element;
      else fresh.set(element.id, element);
    }
    for (const [id, element] of fresh) {
      const old = document.getElementById(id);
      if (old && !old.contains(document.activeElement)) { old.replaceWith(element); fresh.set(id, null); }
      else if (old) { keepFocus(old, element); fresh.set(id, null); }
    }
    if (order) arrange(order, fresh);
    tick();
  }

  function keepFocus(old, element) {
    const at = document.activeElement;
    const path = at.getAttribute("href") || at.id || "";
    old.replaceWith(element);
    const again = path && [...element.querySelectorAll("a, input, button")].find((one) => one.getAttribute("href") === path || one.id === path);
    if (!again) return;
    if (at.value && "value" in again) again.value = at.value;
    again.focus();
  }

  function arrange(order, fresh) {
    const { rows, asks, runs } = order.dataset;
    for (const [list, prefix, ids] of [["rows", "row-", rows], ["asks", "ask-", asks], ["runs", "run-", runs]]) {
      const parent = document.getElementById(list);
      if (!parent) continue;
      const wanted = ids ? ids.split(" ").map((id) => prefix + id) : [];
      const keep = new Set(wanted);
      for (const child of [...parent.children]) if (!keep.has(child.id)) child.remove();
      wanted.forEach((id, index) => {
        const element = document.getElementById(id) || fresh.get(id);
        if (element && parent.children[index] !== element) parent.insertBefore(element, parent.children[index] || null);
      });
      document.getElementById(`no-${list}`).hidden = wanted.length > 0;
    }
    const counts = document.getElementById("counts");
    if (counts) { counts.textContent = order.dataset.title; document.title = `${order.dataset.title} · sm`; }
  }

  // --- what a form sends --------------------------------------------------------------------------------------------

  const ask = (form, button) => {
    const decision = button.dataset.decision;
    if (decision === "allow") return { decision };
    if (decision === "always") return { decision: "allow", always: true };
    if (decision === "deny") return { decision, text: form.querySelector("[data-reason]")?.value ?? "" };
    return { decision, answers: [...form.querySelectorAll("[data-question]")].map(answerTo) };
  };

  function answerTo(question) {
    const own = question.querySelector("[data-own]").value.trim();
    if (own) return own;
    const chosen = [...question.querySelectorAll("input:checked")].map((input) => Number(input.value));
    return chosen.length === 1 ? chosen[0] : chosen;
  }

  const BODIES = {
    ask,
    none: () => undefined,
    empty: () => ({}),
    message: (form) => ({ text: form.elements.text.value, mode: form.elements.mode.value }),
    handoff: (form) => ({ requester_session_id: form.dataset.session, document: form.elements.document.value }),
  };

  async function call(method, path, content) {
    const headers = { "X-SM-CSRF": csrf };
    if (content !== undefined) headers["Content-Type"] = "application/json";
    let answer;
    try {
      answer = await fetch(path, { method, headers, body: content === undefined ? undefined : JSON.stringify(content) });
    } catch {
      return "The server does not answer. Nothing was changed.";
    }
    if (answer.ok) return "";
    const problem = await answer.json().catch(() => ({ error: `The server answered ${answer.status}` }));
    return problem.hint ? `${problem.error} (${problem.hint})` : problem.error;
  }
  window.smCall = call;

  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("form[data-api]");
    if (!form) return;
    event.preventDefault();
    if (form.dataset.question && !window.confirm(form.dataset.question)) return;
    const [method, path] = form.dataset.api.split(" ");
    const output = form.querySelector("output");
    const buttons = [...form.querySelectorAll("button")];
    const content = BODIES[form.dataset.body](form, event.submitter || buttons[0]);
    buttons.forEach((button) => { button.disabled = true; });
    output.textContent = "…";
    const problem = await call(method, path, content);
    buttons.forEach((button) => { button.disabled = false; });
    output.className = problem ? "failed" : "done";
    output.textContent = problem || form.dataset.done || "Done.";
    if (!problem) {
      form.querySelectorAll("textarea").forEach((area) => { area.value = ""; });
      if (form.dataset.then === "reload") location.reload();
      touched();
    }
  });

  setInterval(tick, 1000);
  tick();
  if (body.dataset.live) connect();
})();
