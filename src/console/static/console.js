// What a page does besides showing: it stays live, opens forms in place, counts ages on, and knows a few keys.
// Without it everything still works, by loading pages.
"use strict";

const root = document.documentElement;
const one = (selector, from = document) => from.querySelector(selector);
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
root.classList.add("scripted");

// The theme: the system's, or the one chosen here.
const themes = ["light", "dark"];
const theme = localStorage.getItem("theme");
if (themes.includes(theme)) root.dataset.theme = theme;
const themeSwitch = one("[data-theme-switch]");
if (themeSwitch) {
  themeSwitch.hidden = false;
  themeSwitch.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
  });
}

// Ages and the clock, by the time of the service.
let skew = 0;
const zone = document.body.dataset.zone || "UTC";
const clock = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });
const now = () => Date.now() + skew;
function ageText(seconds) {
  if (seconds < 0) return `in ${spanText(-seconds)}`;
  return `${spanText(seconds)} ago`;
}
function spanText(seconds) {
  const whole = Math.floor(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d`;
}
function showTimes(from = document) {
  for (const time of all("time[data-age]", from)) {
    const text = ageText((now() - Date.parse(time.dateTime)) / 1000);
    if (time.textContent !== text) time.textContent = text;
  }
  const shown = one("[data-clock]");
  if (shown && from === document) shown.textContent = clock.format(now());
}
setInterval(showTimes, 1000);
showTimes();

// Since you were last here: an open page notes that it is looked at, and a longer absence is offered on the page of the shift.
const ABSENCE = 20 * 60 * 1000;
function noteLook() {
  if (document.hidden) return;
  const seen = Number(localStorage.getItem("seen"));
  if (seen && Date.now() - seen > ABSENCE) localStorage.setItem("left", String(seen));
  localStorage.setItem("seen", String(Date.now()));
}
noteLook();
setInterval(noteLook, 30000);
document.addEventListener("visibilitychange", noteLook);
const sinceLastHere = one("[data-since-last-here]");
const left = Number(localStorage.getItem("left"));
if (sinceLastHere && left && Date.now() - left < 13 * 86400 * 1000) {
  sinceLastHere.hidden = false;
  sinceLastHere.href = `/console/shift?from=${new Date(left).toISOString().slice(0, 19)}Z`;
}

// Live regions. A tab that nobody looks at is not live; it is brought up to date when it is looked at again.
const pulse = one("[data-pulse]");
const live = document.body.dataset.live;
let source = null;
let heardAt = 0;
let trouble = "";
function showPulse() {
  if (!pulse) return;
  const silence = heardAt ? (Date.now() - heardAt) / 1000 : Infinity;
  const lost = !source || silence > 6;
  const age = Number.isFinite(silence) ? spanText(silence) : "";
  const text = trouble || (lost ? (heardAt ? `connection lost ${age} ago; trying again` : "connecting") : `live, ${silence.toFixed(1)} s`);
  const look = trouble || (lost && heardAt) ? "stop" : lost ? "" : "good";
  if (pulse.dataset.shown === text) return;
  pulse.dataset.shown = text;
  pulse.className = `pulse ${look}`;
  one("span", pulse).textContent = look === "good" ? "●" : look === "stop" ? "✗" : "○";
  one("[data-pulse-text]", pulse).textContent = text;
  document.body.classList.toggle("stale-page", look === "stop");
}
// What arrives for a place while somebody presses, drags or types in it is shown when they are done: no click is lost.
const late = new Map(); // by the id of the place, what shows it
let pressed = null;
const isInHand = (region) => region.contains(pressed) || (region.contains(document.activeElement) && document.activeElement.matches("input, select, textarea"));
const showLate = () => setTimeout(() => [...late.values()].forEach((show) => show()));
document.addEventListener("pointerdown", (event) => { if (event.button === 0) pressed = event.target; }, true);
function letGo() {
  setTimeout(() => (pressed = null)); // after the click
  showLate();
}
document.addEventListener("pointerup", letGo);
document.addEventListener("pointercancel", letGo);
document.addEventListener("focusout", showLate);
function replaceRegion(news) {
  const { id, mark, html } = news;
  const region = document.getElementById(id);
  late.delete(id);
  if (!region || region.dataset.mark === mark) return;
  if (isInHand(region)) return late.set(id, () => replaceRegion(news));
  const focused = region.contains(document.activeElement) ? document.activeElement : null;
  const at = focused && (focused.id ? `#${CSS.escape(focused.id)}` : focused.getAttribute("href") ? `[href="${CSS.escape(focused.getAttribute("href"))}"]` : null);
  const open = all("details", region).map((part) => part.open);
  const scrolled = all(".scroll", region).map((part) => [part.scrollTop, part.scrollLeft]);
  region.innerHTML = html;
  region.dataset.mark = mark;
  all("details", region).forEach((part, index) => { if (open[index]) part.open = true; });
  all(".scroll", region).forEach((part, index) => { if (scrolled[index]) [part.scrollTop, part.scrollLeft] = scrolled[index]; });
  if (at) one(at, region)?.focus({ preventScroll: true });
  showTimes(region);
  region.dispatchEvent(new CustomEvent("replaced", { bubbles: true }));
}
function connect() {
  if (!live || source || document.hidden) return;
  source = new EventSource(`/console/live?at=${encodeURIComponent(live)}`);
  source.addEventListener("region", (event) => { heardAt = Date.now(); replaceRegion(JSON.parse(event.data)); });
  source.addEventListener("pulse", (event) => { heardAt = Date.now(); skew = JSON.parse(event.data).at * 1000 - Date.now(); showPulse(); });
  source.addEventListener("trouble", (event) => { trouble = JSON.parse(event.data).text; showPulse(); });
  source.addEventListener("signed-out", () => location.reload());
  source.addEventListener("error", () => {
    if (source && source.readyState === EventSource.CLOSED) {
      source = null;
      setTimeout(connect, 1500);
    }
    showPulse();
  });
}
function disconnect() {
  if (source) source.close();
  source = null;
}
document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", connect);
setInterval(showPulse, 500);
connect();

// One exchange with the service, to the end of its answer; null when it did not come so far.
async function exchange(address, options = {}) {
  try {
    const answer = await fetch(address, { ...options, headers: { "X-Fragment": "1" } });
    return { answer, text: await answer.text(), type: answer.headers.get("content-type") || "" };
  } catch {
    return null;
  }
}

// Forms in a dialog, submitted in place.
const dialog = one("[data-form-dialog]");
const said = one("[data-said]");
function say(text, wrong = false) {
  if (!said) return;
  said.className = wrong ? "said stop" : "said";
  said.textContent = `${wrong ? "✗" : "✓"} ${text}`;
}
const isWholePage = (html) => html.trimStart().startsWith("<!doctype");
async function openForm(href) {
  const back = location.pathname + location.search;
  const address = new URL(href, location.href);
  if (!address.searchParams.has("back")) address.searchParams.set("back", back);
  const got = await exchange(address);
  if (!got) return say("The service cannot be reached; try again in a moment.", true);
  if (got.answer.redirected || !got.type.startsWith("text/html")) return location.assign(href);
  if (isWholePage(got.text)) return location.assign(href);
  dialog.innerHTML = got.text;
  if (!dialog.open) dialog.showModal();
  (one("[aria-invalid], input:not([type=hidden]), textarea, select", dialog) || one("button:not(.default)", dialog))?.focus();
}
async function submitForm(form, submitter) {
  const typed = new FormData(form);
  const body = form.enctype === "multipart/form-data" ? typed : new URLSearchParams(typed);
  if (submitter?.name) body.append(submitter.name, submitter.value);
  const action = submitter?.getAttribute("formaction") || form.getAttribute("action");
  const buttons = [...form.elements].filter((part) => part.localName === "button" && !part.disabled);
  const focused = document.activeElement?.id; // what is disabled loses the focus
  buttons.forEach((button) => (button.disabled = true));
  const got = await exchange(action, { method: "POST", body });
  buttons.forEach((button) => (button.disabled = false));
  if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus({ preventScroll: true });
  if (!got) return say("The service cannot be reached; nothing is known to have been done. Try again.", true);
  if (got.type.startsWith("application/json")) {
    const { to, said: text } = JSON.parse(got.text);
    dialog.close();
    const target = new URL(to, location.href);
    if (target.pathname !== location.pathname) return location.assign(to);
    all("form[data-judge]").forEach(judge);
    if (form.dataset.place) {
      form.reset();
      all(".refusal", form).forEach((part) => part.remove());
    }
    return say(text);
  }
  if (form.dataset.place && !isWholePage(got.text)) return void (document.getElementById(form.dataset.place).innerHTML = got.text);
  const refused = submitter?.dataset?.say !== undefined && one(".refusal", new DOMParser().parseFromString(got.text, "text/html"));
  if (refused) return say(refused.textContent.trim().replace(/^✗\s*/, ""), true);
  if (isWholePage(got.text)) return location.reload();
  if (form.dataset.judge) return showJudgement(form, got.text);
  dialog.innerHTML = got.text;
  if (!dialog.open) dialog.showModal();
  (one("[aria-invalid]", dialog) || one(".refusal, .rehearsed", dialog) || one("input:not([type=hidden])", dialog))?.focus?.();
}
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-dialog]");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0 && link.pathname.startsWith("/console/do/")) {
    event.preventDefault();
    openForm(link.href);
  }
  if (event.target.closest("[data-cancel]") && dialog.open) {
    event.preventDefault();
    dialog.close();
  }
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.matches("[data-command], [data-act]") || event.submitter?.matches("[data-in-place]")) {
    event.preventDefault();
    submitForm(form, event.submitter);
  }
});
document.addEventListener("change", (event) => {
  const show = event.target.closest("[data-reshow]");
  if (show) submitForm(show.form, { name: "_show", value: "1", getAttribute: () => null });
});

// Items that wait are dragged by their handles. Where one is let go is sent as its buttons send it, and the list changes when
// that is on record.
let drag = null;
function endDrag() {
  all(".dragged, .drop-before, .drop-behind", drag.row.parentNode).forEach((part) => part.classList.remove("dragged", "drop-before", "drop-behind"));
  drag = null;
  letGo();
}
document.addEventListener("pointerdown", (event) => {
  const handle = event.target.closest("[data-drag]");
  if (!handle || event.button) return;
  event.preventDefault();
  handle.setPointerCapture(event.pointerId);
  drag = { row: handle.closest("[data-item]"), rows: all("[data-item]", handle.closest("ol")), to: null };
  drag.row.classList.add("dragged");
});
document.addEventListener("pointermove", (event) => {
  if (!drag) return;
  const others = drag.rows.filter((row) => row !== drag.row);
  const isAbove = (row) => event.clientY < row.getBoundingClientRect().top + row.offsetHeight / 2;
  const before = others.find(isAbove), last = others.at(-1);
  drag.to = before ? before.dataset.item : drag.row.parentNode.dataset.after;
  others.forEach((row) => row.classList.toggle("drop-before", row === before));
  last?.classList.toggle("drop-behind", !before);
  if (event.clientY < 80 || event.clientY > innerHeight - 80) scrollBy(0, event.clientY < 80 ? -16 : 16);
});
document.addEventListener("pointerup", () => {
  if (!drag) return;
  const { row, rows, to } = drag;
  const next = rows[rows.indexOf(row) + 1]?.dataset.item ?? row.parentNode.dataset.after;
  endDrag();
  if (to === null || to === next) return;
  const submitter = { name: "before_item_id", value: to, dataset: { say: "" }, getAttribute: () => row.dataset.moveAt };
  submitForm(document.getElementById("act"), submitter);
});
document.addEventListener("pointercancel", () => drag && endDrag());

// A file that is dropped on a form is sent with it.
document.addEventListener("dragover", (event) => {
  const place = event.target.closest("[data-drop]");
  if (place) event.preventDefault();
  all("[data-drop]").forEach((one) => one.classList.toggle("over", one === place));
});
document.addEventListener("dragleave", (event) => event.target.closest("[data-drop]")?.classList.remove("over"));
document.addEventListener("drop", (event) => {
  const place = event.target.closest("[data-drop]");
  if (!place) return;
  event.preventDefault();
  place.classList.remove("over");
  const input = one("input[type=file]", place);
  input.files = event.dataTransfer.files;
  input.form.requestSubmit();
});

// The slider through versions shows each one as it is passed.
document.addEventListener("input", (event) => {
  const slider = event.target.closest("[data-slider]");
  if (slider) one("output", slider).textContent = `${event.target.value} of ${event.target.max}`;
});
document.addEventListener("change", (event) => {
  const slider = event.target.closest("[data-slider]");
  if (slider) location.href = `${slider.action.split("?")[0]}?${new URLSearchParams(new FormData(slider))}`;
});

// Forms that are judged while they are filled in: what comes back replaces the place they name, and what it says of single
// fields stands beside those. They are judged again when something on the page has changed.
const judging = new Map();
function showJudgement(form, html) {
  const place = document.getElementById(form.dataset.judge);
  late.delete(place.id);
  if (place.contains(pressed)) return late.set(place.id, () => showJudgement(form, html));
  const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
  place.innerHTML = html;
  if (focused) document.getElementById(focused)?.focus();
  all(".error", form).forEach((error) => error.remove());
  all("[aria-invalid]", form).forEach((field) => field.removeAttribute("aria-invalid"));
  all(".wrong", form).forEach((field) => field.classList.remove("wrong"));
  for (const error of all("[data-field-error]", place)) {
    const field = document.getElementById(error.dataset.fieldError);
    document.getElementById(`${error.dataset.fieldError}-about`)?.append(error);
    field?.setAttribute("aria-invalid", "true");
    field?.closest(".field")?.classList.add("wrong");
  }
  showTimes(place);
  form.dispatchEvent(new CustomEvent("judged"));
}
async function judge(form) {
  judging.get(form)?.abort();
  const controller = new AbortController();
  judging.set(form, controller);
  const body = new URLSearchParams(new FormData(form));
  const got = await exchange(form.dataset.judgeAt, { method: "POST", body, signal: controller.signal });
  if (judging.get(form) !== controller) return;
  if (!got) return say("The service cannot be reached; what is typed is not judged.", true);
  if (!isWholePage(got.text)) showJudgement(form, got.text);
}
let judgeSoon = 0;
document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (form?.dataset.judge) {
    clearTimeout(judgeSoon);
    judgeSoon = setTimeout(() => judge(form), 250);
  }
});
document.addEventListener("replaced", () => all("form[data-judge]").forEach(judge));

// Keys: H holds, S stops, Shift+A aborts; never while something is typed. Escape lets go what is dragged.
document.addEventListener("keydown", (event) => {
  if (drag && event.key === "Escape") return endDrag();
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  const button = one(`[data-key="${CSS.escape(event.key)}"]`);
  if (button) {
    event.preventDefault();
    button.click();
  }
});
