// What all pages share: menu, dialogs, forms, live parts, copying.
// Text from the server is shown as text; only fragments that the console's own templates escaped become HTML.

const body = document.body;
const statusRegion = document.getElementById("status");
const FLASH = "moldau-flash";

export function report(message) {
  statusRegion.textContent = message;
}

// There is one alert at a time, where its reason is.
export function complain(message, where) {
  const place = where ?? document.getElementById("alerts");
  document.querySelectorAll("#alerts > [role=alert], dialog [role=alert]").forEach((each) => each.remove());
  if (!message) return;
  const alert = document.createElement("p");
  alert.className = "problem";
  alert.setAttribute("role", "alert");
  alert.textContent = message;
  const buttons = place.querySelector(":scope > .buttons");
  if (buttons) buttons.before(alert);
  else place.append(alert);
}

// A session can end while a page is open: the person is sent to the login, and returns from there.
export async function ask(url, options) {
  const response = await fetch(url, options);
  const ended = response.status === 401 || (response.redirected && new URL(response.url).pathname === "/login");
  if (ended) location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
  return response;
}

export async function post(url, content, type = "application/x-www-form-urlencoded") {
  const headers = { Accept: "application/json", "Content-Type": type };
  if (body.dataset.csrf) headers["X-CSRF-Token"] = body.dataset.csrf;
  let response;
  try {
    response = await ask(url, { method: "POST", headers, body: content });
  } catch {
    return { error: "The console does not answer." };
  }
  try {
    return await response.json();
  } catch {
    return { error: `The console answered with status ${response.status}.` };
  }
}

// Menu on narrow screens.

const menu = document.querySelector("button.menu");
menu?.addEventListener("click", () => {
  const open = menu.getAttribute("aria-expanded") !== "true";
  menu.setAttribute("aria-expanded", String(open));
  document.getElementById("navigation").classList.toggle("open", open);
});
document.querySelector("[data-cluster]")?.addEventListener("change", (event) => {
  location.href = event.target.value;
});

// Dialogs: a button opens one and fills its fields; Escape closes it, and the focus returns to the button.

let opener = null;

function fill(dialog, button) {
  const form = dialog.querySelector("form");
  form?.reset();
  complain("");
  dialog.querySelectorAll("details").forEach((each) => (each.open = false));
  dialog.querySelectorAll("[data-field]").forEach((each) => (each.textContent = ""));
  for (const attribute of button.attributes) {
    if (!attribute.name.startsWith("data-fill-")) continue;
    const name = attribute.name.slice("data-fill-".length);
    const field = form?.elements.namedItem(name);
    if (field?.type === "checkbox") field.checked = attribute.value === "true";
    else if (field) field.value = attribute.value;
    // A field that is filled must be visible.
    if (attribute.value && field && field.type !== "hidden") field.closest("details")?.setAttribute("open", "");
    dialog.querySelectorAll(`[data-field="${name}"]`).forEach((each) => (each.textContent = attribute.value));
  }
  dialog.querySelectorAll("[data-preview-result], [data-load-result]").forEach((each) => each.replaceChildren());
  dialog.querySelectorAll("[data-start]").forEach(showWhen);
  if (form?.dataset.confirm !== undefined || form?.dataset.preview) form.querySelector("[type=submit]").disabled = true;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-dialog]");
  if (button) {
    const dialog = document.getElementById(button.dataset.dialog);
    opener = button;
    fill(dialog, button);
    dialog.showModal();
    dialog.querySelector("input:not([type=hidden]):not([disabled]), select, textarea")?.focus();
  } else if (event.target.closest("[data-close]")) {
    event.target.closest("dialog").close();
  }
});
// The event does not bubble, and dialogs come and go with the lists they belong to.
document.addEventListener(
  "close",
  (event) => {
    if (event.target.id === "ask") asking = null;
    returnFocus();
  },
  true,
);

// The opener may have been replaced by an update of its part, or be gone after the action.
function returnFocus() {
  if (!opener) return;
  const like = (each) => each.textContent === opener.textContent;
  const target = opener.isConnected ? opener : [...document.querySelectorAll("main button")].find(like);
  (target ?? document.getElementById("content")).focus();
}
document.addEventListener("input", (event) => {
  const form = event.target.closest("form");
  if (form?.dataset.confirm !== undefined)
    form.querySelector("[type=submit]").disabled = form.elements.namedItem("name").value !== form.dataset.confirm;
  if (form?.dataset.preview) form.querySelector("[type=submit]").disabled = true;
});

// Fields that belong to one choice only.

function showWhen(select) {
  select.form.querySelectorAll("[data-when]").forEach((each) => (each.hidden = each.dataset.when !== select.value));
}
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-start]")) showWhen(event.target);
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
  if (event.target.matches("[data-load]")) loadFields(event.target);
});

async function loadFields(select) {
  const result = select.form.querySelector("[data-load-result]");
  result.replaceChildren();
  if (!select.value) return;
  const response = await ask(`${select.dataset.load}?class=${encodeURIComponent(select.value)}`);
  if (response.ok) result.innerHTML = await response.text();
}

// Forms: sent without leaving the page; a refusal is shown where the form is. Some ask first.

let asking = null;
function askFirst(form, button) {
  const dialog = document.getElementById("ask");
  dialog.querySelector("h2").textContent = form.dataset.ask;
  dialog.querySelector("[data-confirmed]").textContent = button.firstChild.textContent.trim();
  complain("");
  asking = form;
  opener = button;
  dialog.showModal();
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  const button = event.submitter ?? form.querySelector("[type=submit]");
  if (form.closest("#ask")) {
    if (asking) send(asking, asking.querySelector("[type=submit]"));
    return;
  }
  if (!form.matches("[data-action]")) return;
  event.preventDefault();
  if (form.dataset.ask) askFirst(form, button);
  else send(form, button);
});

async function send(form, button) {
  if (form.dataset.busy) return;
  form.dataset.busy = "true";
  const target = button?.getAttribute("formaction") ?? form.getAttribute("action");
  const answer = await post(target, new URLSearchParams(new FormData(form)));
  delete form.dataset.busy;
  const dialog = form.closest("dialog");
  if (answer.error) {
    complain(answer.error, dialog ? form : undefined);
    return;
  }
  complain("");
  if (button?.hasAttribute("data-stay")) {
    complain("", form);
    const note = form.querySelector(".note") ?? button.parentElement.insertBefore(document.createElement("span"), button);
    note.className = "note";
    note.textContent = answer.message;
    return;
  }
  dialog?.close();
  const next = answer.location;
  if (next && new URL(next, location.href).pathname !== location.pathname) {
    sessionStorage.setItem(FLASH, answer.message);
    location.href = next;
    return;
  }
  report(answer.message);
  await refresh();
  if (opener && !opener.isConnected && !document.querySelector("dialog[open]")) returnFocus();
  document.dispatchEvent(new CustomEvent("done"));
}

const flash = sessionStorage.getItem(FLASH);
if (flash) {
  sessionStorage.removeItem(FLASH);
  report(flash);
}

// The preview of a form: a fragment of the server, after which the form can be sent.

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-preview-button]");
  if (!button) return;
  const form = button.form;
  const result = form.querySelector("[data-preview-result]");
  complain("", form);
  const headers = { "Content-Type": "application/x-www-form-urlencoded", Accept: "text/html" };
  if (body.dataset.csrf) headers["X-CSRF-Token"] = body.dataset.csrf;
  const content = new URLSearchParams(new FormData(form));
  const response = await ask(form.dataset.preview, { method: "POST", headers, body: content });
  if (response.ok) {
    result.innerHTML = await response.text();
    form.querySelector("[type=submit]").disabled = false;
  } else {
    result.replaceChildren();
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    complain(page.querySelector("[role=alert]")?.textContent ?? "Not possible.", form);
  }
});

// Parts of the page that changed: fetched again, and morphed into the page.

async function refresh() {
  const part = document.getElementById("live") ?? document.getElementById("part");
  if (!part) return;
  if (part.hasAttribute("hx-get")) {
    body.dispatchEvent(new CustomEvent("snapshot"));
    return;
  }
  const response = await ask(location.href, { headers: { Accept: "text/html" } });
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const fresh = page.getElementById(part.id);
  if (fresh) part.replaceWith(document.adoptNode(fresh));
  document.querySelectorAll("dialog:not([open])").forEach((each) => each.remove());
  page.querySelectorAll("dialog").forEach((each) => {
    if (!document.getElementById(each.id)) body.append(document.adoptNode(each));
  });
}

// A part stays as it is when its update is refused: a group is unknown for a moment while its coordinator moves.
const gone = document.getElementById("gone");
document.addEventListener("htmx:after:request", (event) => {
  const { status } = event.detail.ctx.response;
  if (status < 400 || status === 404) gone.hidden = status !== 404;
});

let source = null;
function listen() {
  if (source || document.hidden) return;
  source = new EventSource(`${body.dataset.base}/events`);
  const notice = document.getElementById("connection");
  source.addEventListener("snapshot", (event) => {
    notice.hidden = true;
    body.dispatchEvent(new CustomEvent("snapshot", { detail: JSON.parse(event.data) }));
  });
  source.addEventListener("open", () => (notice.hidden = true));
  source.addEventListener("error", () => {
    notice.hidden = false;
    if (source?.readyState !== EventSource.CLOSED) return;
    // Refused, not interrupted: the session may have ended.
    source = null;
    ask(location.href, { method: "HEAD", headers: { "X-Background": "true" } }).catch(() => {});
  });
}
// Browsers open few connections to one server; a hidden page gives up its own.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    source?.close();
    source = null;
  } else listen();
});
addEventListener("pagehide", () => source?.close());
listen();

// Search while typing.

let typing = 0;
document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-search]")) return;
  clearTimeout(typing);
  const form = event.target.form;
  typing = setTimeout(async () => {
    const query = new URLSearchParams(new FormData(form));
    const url = `${location.pathname}?${query}`;
    history.replaceState(null, "", url);
    const response = await ask(url, { headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById("live");
    if (!fresh || location.search !== `?${query}`) return;
    const part = document.getElementById("live");
    part.replaceWith(document.adoptNode(fresh));
    window.htmx?.process(fresh);
  }, 200);
});

document.addEventListener("click", async (event) => {
  const expander = event.target.closest("[data-expand]");
  if (expander) {
    const open = expander.getAttribute("aria-expanded") !== "true";
    expander.setAttribute("aria-expanded", String(open));
    document.getElementById(expander.getAttribute("aria-controls")).hidden = !open;
  }
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = button.parentElement.querySelector("pre").textContent;
  try {
    await navigator.clipboard.writeText(text);
    report("Copied.");
  } catch {
    getSelection().selectAllChildren(button.parentElement.querySelector("pre"));
    report("Selected; press Ctrl-C to copy.");
  }
});
