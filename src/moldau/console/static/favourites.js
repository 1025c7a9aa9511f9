// Favourite topics, kept in this browser: a button on the page of a topic, links on the page of all topics.

const base = document.body.dataset.base;
const KEY = `moldau-favourites${base}`;
const MOST = 50;
const list = document.querySelector("[data-favourites]");
const button = document.querySelector("[data-favourite]");

function kept() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? [];
  } catch {
    return [];
  }
}

function show() {
  const names = kept();
  button?.setAttribute("aria-pressed", String(names.includes(button.dataset.favourite)));
  if (!list) return;
  list.hidden = !names.length;
  list.querySelectorAll("a").forEach((each) => each.remove());
  for (const name of names) {
    const link = document.createElement("a");
    link.href = `${base}/topics/${encodeURIComponent(name)}`;
    link.textContent = name;
    list.append(link);
  }
}

button?.addEventListener("click", () => {
  const name = button.dataset.favourite;
  const others = kept().filter((each) => each !== name);
  const names = others.length < kept().length ? others : [name, ...others].slice(0, MOST);
  localStorage.setItem(KEY, JSON.stringify(names.sort()));
  show();
});
show();
