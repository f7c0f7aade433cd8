// Shows a session's screen as it changes, and once it is unlocked sends what the user types.
"use strict";

(() => {
  const place = document.getElementById("terminal");
  if (!place || !window.Terminal) return;
  const path = `/web/sessions/${place.dataset.session}`;
  const said = document.getElementById("terminal-state");
  const button = document.getElementById("unlock");
  const RETRY_MS = 2000;
  const GATHER_MS = 15;
  adoptStyles();
  const nothing = { activate() {}, hover() {}, leave() {} };
  const term = new window.Terminal({
    cols: 80, rows: 24, disableStdin: true, cursorBlink: false, scrollback: 0, fontSize: 13, convertEol: false,
    linkHandler: nothing, screenReaderMode: true, allowProposedApi: false,
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
    theme: { background: "#15171a", foreground: "#e7e8ea" },
  });
  term.open(place);
  term.textarea?.setAttribute("aria-label", "Keyboard of the terminal");
  let unlocked = false;
  let typed = "";
  let sending = false;
  let ended = false;

  // xterm writes its rules into <style> elements, which the page's policy refuses; sheets made by script it allows.
  function adoptStyles() {
    const create = document.createElement.bind(document);
    document.createElement = (name, options) => {
      if (String(name).toLowerCase() !== "style") return create(name, options);
      const sheet = new CSSStyleSheet();
      document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
      const stand = create("span");
      stand.hidden = true;
      Object.defineProperty(stand, "textContent", { set: (rules) => sheet.replaceSync(rules) });
      return stand;
    };
    // A colour outside of the palette is an inline style to xterm, which the policy refuses as well.
    const set = HTMLElement.prototype.setAttribute;
    HTMLSpanElement.prototype.setAttribute = function setAttribute(name, value) {
      if (name === "style") this.style.cssText = value;
      else set.call(this, name, value);
    };
  }

  function show(found) {
    const [columns, rows] = found.size;
    if (columns > 0 && (columns !== term.cols || rows !== term.rows)) { term.resize(columns, rows); }
    let text = "\x1b[?7l";
    for (const [number, line] of Object.entries(found.lines)) text += `\x1b[${Number(number) + 1};1H\x1b[0m\x1b[2K${line}`;
    text += `\x1b[0m\x1b[${found.cursor[1] + 1};${found.cursor[0] + 1}H`;
    term.write(text);
    ended = Boolean(found.dead);
    state();
  }

  function state(words) {
    said.textContent = words || (ended ? "its client has ended" : unlocked ? "unlocked: your keys go to the client" : "live, locked");
    place.dataset.state = ended ? "ended" : unlocked ? "unlocked" : "locked";
  }

  function connect() {
    const source = new EventSource(`${path}/screen`);
    source.addEventListener("open", () => { term.reset(); state(); });
    source.addEventListener("screen", (event) => show(JSON.parse(event.data)));
    source.addEventListener("gone", () => { source.close(); lock(); state("the pane is gone"); setTimeout(connect, RETRY_MS * 2); });
    source.addEventListener("error", () => { source.close(); lock(); state("no connection"); setTimeout(connect, RETRY_MS); });
  }

  // --- the user's keys ----------------------------------------------------------------------------------------------

  function lock() { if (unlocked) turn(false); }

  function turn(on) {
    unlocked = on;
    term.options.disableStdin = !on;
    button.setAttribute("aria-pressed", String(on));
    button.textContent = on ? "Lock the keyboard" : "Unlock the keyboard";
    typed = "";
    state();
    if (on) term.focus();
  }

  async function send() {
    if (sending || !typed) return;
    sending = true;
    const keys = typed;
    typed = "";
    const problem = await window.smCall("POST", `${path}/keys`, { keys });
    sending = false;
    if (problem) { lock(); state(problem); return; }
    if (typed) setTimeout(send, GATHER_MS);
  }

  if (button) {
    button.addEventListener("click", () => turn(!unlocked));
    term.attachCustomKeyEventHandler((event) => {
      if (event.type === "keydown" && event.ctrlKey && event.shiftKey && event.code === "KeyL") {
        event.preventDefault();
        lock();
        button.focus();
        return false;
      }
      return unlocked;
    });
    term.onData((keys) => {
      if (!unlocked) return;
      typed += keys;
      setTimeout(send, GATHER_MS);
    });
    place.addEventListener("paste", (event) => {
      event.preventDefault();
      event.stopImmediatePropagation();
      const paste = event.clipboardData.getData("text/plain");
      if (unlocked && paste) window.smCall("POST", `${path}/keys`, { paste }).then((problem) => problem && state(problem));
    }, true);
  }
  connect();
})();
