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

// Notices: where somebody asked for it, the browser says what became of the work that they started. Such a tab stays live.
const notifies = () => "Notification" in window && Notification.permission === "granted" && localStorage.getItem("notify") === "1";
const notifySwitch = one("[data-notify-switch]");
function showNotifySwitch() {
  notifySwitch.hidden = !("Notification" in window);
  notifySwitch.setAttribute("aria-pressed", notifies());
  notifySwitch.textContent = notifies() ? "Notifies you" : "Notify me";
}
if (notifySwitch) {
  showNotifySwitch();
  notifySwitch.addEventListener("click", async () => {
    const wanted = !notifies();
    if (wanted) await Notification.requestPermission();
    localStorage.setItem("notify", wanted ? "1" : "0");
    localStorage.setItem("noticed", JSON.stringify(notices().map((notice) => notice.dataset.notice)));
    showNotifySwitch();
    if (wanted && !notifies()) say("The browser does not allow notifications of this page; allow them in its settings.", true);
  });
}
const notices = () => all("#region-notices [data-notice]");
function tellNotices() {
  if (!notifies()) return;
  const known = JSON.parse(localStorage.getItem("noticed") || "[]");
  for (const notice of notices()) {
    if (known.includes(notice.dataset.notice)) continue;
    const shown = new Notification(notice.textContent, { body: notice.dataset.text, tag: notice.dataset.notice });
    shown.addEventListener("click", () => { focus(); location.assign(notice.href); });
  }
  localStorage.setItem("noticed", JSON.stringify(notices().map((notice) => notice.dataset.notice)));
}
document.addEventListener("replaced", (event) => { if (event.target.id === "region-notices") tellNotices(); });
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
const isInHand = (region) => region.contains(pressed) || (region.contains(document.activeElement) && document.activeElement.matches("input:not([type=checkbox]), select, textarea"));
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
  const kept = (part, index) => part.id || index;
  const open = new Map(all("details", region).map((part, index) => [kept(part, index), part.open]));
  const checked = all("input[type=checkbox]:checked", region).map((box) => box.id);
  const scrolled = all(".scroll", region).map((part) => [part.scrollTop, part.scrollLeft]);
  region.innerHTML = html;
  region.dataset.mark = mark;
  all("details", region).forEach((part, index) => { if (open.get(kept(part, index))) part.open = true; });
  all("input[type=checkbox]", region).forEach((box) => { if (checked.includes(box.id)) box.checked = true; });
  all(".scroll", region).forEach((part, index) => { if (scrolled[index]) [part.scrollTop, part.scrollLeft] = scrolled[index]; });
  if (at) one(at, region)?.focus({ preventScroll: true });
  showTimes(region);
  labelCells(region);
  region.dispatchEvent(new CustomEvent("replaced", { bubbles: true }));
}
// Tables become cards on a phone: each cell has its heading beside it.
function labelCells(from = document) {
  for (const table of all(".scroll > table:has(thead)", from)) {
    const heads = all("thead th", table).map((head) => head.textContent.trim());
    for (const row of all("tbody tr", table)) [...row.children].forEach((cell, index) => (cell.dataset.label = heads[index] || ""));
  }
}
labelCells();
function connect() {
  if (!live || source || (document.hidden && !notifies())) return;
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
document.addEventListener("visibilitychange", () => (document.hidden && !notifies() ? disconnect() : connect()));
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
    if (form.dataset.chosen !== undefined) {
      form.reset();
      showChosen();
    }
    if (form.dataset.place) {
      document.getElementById(form.dataset.place).innerHTML = "";
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
document.addEventListener("click", (event) => {
  const reason = event.target.closest("[data-fill]");
  if (!reason) return;
  document.getElementById(reason.dataset.fill).value = reason.value;
  one(".buttons button", reason.form)?.focus();
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

// The search in the head suggests while somebody types: what the page of the search would show.
const finder = one("#find");
const suggestions = one("[data-suggestions]");
let findSoon = 0;
async function suggest() {
  const text = finder.value.trim();
  const got = text ? await exchange(`/console/find?q=${encodeURIComponent(text)}`) : null;
  if (text !== finder.value.trim()) return;
  const found = got && new DOMParser().parseFromString(got.text, "text/html").getElementById("region-found");
  suggestions.innerHTML = found ? found.innerHTML : "";
  suggestions.hidden = !found;
}
const endFind = () => { if (suggestions) suggestions.hidden = true; };
if (finder) {
  finder.addEventListener("input", () => { clearTimeout(findSoon); findSoon = setTimeout(suggest, 150); });
  finder.form.addEventListener("keydown", (event) => {
    const links = all("a", suggestions);
    const at = links.indexOf(document.activeElement);
    if (event.key === "Escape") { endFind(); finder.focus(); }
    if (suggestions.hidden || !links.length || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    const next = at + (event.key === "ArrowDown" ? 1 : -1);
    (next < 0 ? finder : links[Math.min(next, links.length - 1)]).focus();
  });
  document.addEventListener("click", (event) => { if (!finder.form.contains(event.target)) endFind(); });
}

// The menu of a phone is a sheet, whose button counts what waits in it.
const menuSwitch = one("[data-menu-switch]");
function showMenu(isOpen) {
  document.body.classList.toggle("menu-open", isOpen);
  menuSwitch.setAttribute("aria-expanded", isOpen);
}
function countMenu() {
  const sum = all(".menu .n").reduce((whole, part) => whole + (parseInt(part.textContent) || 0), 0);
  if (menuSwitch) one("[data-menu-count]").textContent = sum ? ` ${sum}` : "";
}
menuSwitch?.addEventListener("click", () => showMenu(!document.body.classList.contains("menu-open")));
document.addEventListener("replaced", countMenu);
countMenu();

// The keys, and what is open beside a row.
const keysDialog = one("[data-keys-dialog]");
const keysSwitch = one("[data-keys-switch]");
if (keysSwitch) {
  keysSwitch.hidden = false;
  keysSwitch.addEventListener("click", () => keysDialog.showModal());
}
function closeActions(but = null) {
  all("details.actions[open]").forEach((part) => { if (!part.contains(but)) part.open = false; });
}
document.addEventListener("click", (event) => closeActions(event.target));

// Items that are chosen are changed together.
function showChosen() {
  const form = one("[data-chosen]");
  if (!form) return;
  const count = all(`input[type=checkbox][form="${form.id}"]:checked`).length;
  form.classList.toggle("any", count > 0);
  one("[data-chosen-count]", form).textContent = `${count} chosen`;
}
document.addEventListener("change", showChosen);
document.addEventListener("replaced", showChosen);
showChosen();

// A choice that has more to be filled in loads that; a file is looked at as soon as it is chosen.
document.addEventListener("change", async (event) => {
  if (event.target.matches("[data-sends]") && event.target.files.length) event.target.form.requestSubmit();
  const { load, into } = event.target.dataset;
  if (!load) return;
  const got = await exchange(`${load}?${new URLSearchParams({ [event.target.name]: event.target.value })}`);
  if (got?.answer.ok) document.getElementById(into).innerHTML = got.text;
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

// What was judged is rehearsed, once nobody has typed for a moment; an answer that news overtakes is not shown.
let typedAt = 0;
let rehearseSoon = 0;
let rehearsing = null;
async function rehearse(form) {
  rehearsing?.abort();
  const controller = (rehearsing = new AbortController());
  const got = await exchange(form.dataset.rehearseAt, { method: "POST", body: new URLSearchParams(new FormData(form)), signal: controller.signal });
  if (rehearsing !== controller || !got?.answer.ok || isWholePage(got.text)) return;
  const place = document.getElementById(form.dataset.rehearse);
  const open = all("details", place).map((part) => part.open);
  place.innerHTML = got.text;
  all("details", place).forEach((part, index) => { if (open[index]) part.open = true; });
}
function rehearseLater(form) {
  if (!form.dataset.rehearse) return;
  clearTimeout(rehearseSoon);
  rehearseSoon = setTimeout(() => rehearse(form), Math.max(0, typedAt + 300 - Date.now()));
}
document.addEventListener("input", () => (typedAt = Date.now()));
document.addEventListener("judged", (event) => rehearseLater(event.target), true);
all("form[data-rehearse]").forEach(rehearseLater);

// Keys: H holds, S stops, Shift+A aborts, / finds; never while something is typed. Escape lets go what is dragged, and closes.
document.addEventListener("keydown", (event) => {
  if (drag && event.key === "Escape") return endDrag();
  if (event.key === "Escape") {
    one("details.actions[open] > summary")?.focus();
    closeActions();
    if (document.body.classList.contains("menu-open")) showMenu(false);
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), textarea, select, dialog")) return;
  const button = one(`[data-key="${CSS.escape(event.key)}"]`);
  if (button) {
    event.preventDefault();
    if (button.localName === "input") button.focus();
    else button.click();
  }
});
