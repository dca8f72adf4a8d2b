// The script of the site (stagec doc --html): search, buttons that copy code, the menu of a phone.
//
// search-index.js is read when somebody searches: searchIndex.pages are [file, title, part], searchIndex.sections are
// [page, anchor, heading, text]. A word of the query matches where a word of the index begins with it, and `gather`
// also matches in `all_gather`. A section is found if all words of the query match somewhere in it.
"use strict";

const root = document.documentElement.dataset.root;
const input = document.querySelector(".search input");
const results = document.querySelector(".results");
const maxResults = 20;

// Search.

let loading = null;

function loadIndex() {
  loading = loading || new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = root + "search-index.js";
    script.onload = resolve;
    script.onerror = reject;
    document.head.append(script);
  });
  return loading;
}

// Points of a field for a word: most if the field is the word, more for whole words than for parts: `recompute` is a part of
// the code `nothing-to-recompute`.
function rateField(field, word, weight) {
  let points = 0;
  for (let at = field.indexOf(word); at >= 0; at = field.indexOf(word, at + 1)) {
    const before = at ? field[at - 1] : " ", behind = field[at + word.length] || " ";
    if (/[a-z0-9]/.test(before))
      continue;
    const isWhole = !/[a-z0-9_-]/.test(behind) && !/[_-]/.test(before);
    points = Math.max(points, field.length === word.length ? 3 : isWhole ? 2 : 1);
    if (points >= 2)
      break;
  }
  return points * weight;
}

// How often a word stands in a text, up to a few times: a long section is not better because it is long.
function countHits(text, word) {
  let hits = 0;
  for (let at = text.indexOf(word); at >= 0 && hits < 4; at = text.indexOf(word, at + word.length))
    hits += at === 0 || !/[a-z0-9]/.test(text[at - 1]) ? 1 : 0;
  return hits;
}

function rateSection(section, words) {
  const page = searchIndex.pages[section[0]];
  const lower = section.lower = section.lower || [page[1], section[2], section[3]].map(text => text.toLowerCase());
  let sum = 0;
  for (const word of words) {
    // The title of a page is that of its first section; others get little for it.
    const points = rateField(lower[1], word, 20) + rateField(lower[0], word, section[2] === page[1] ? 20 : 2) + countHits(lower[2], word);
    if (!points)
      return 0;
    sum += points;
  }
  return page[2] === "Internals" ? sum / 2 : sum;
}

function findSections(query) {
  const words = query.toLowerCase().split(/\s+/).filter(word => word);
  if (!words.length)
    return [];
  return searchIndex.sections
    .map(section => ({section, points: rateSection(section, words), words}))
    .filter(found => found.points > 0)
    .sort((a, b) => b.points - a.points) // stable: pages stay in their order
    .slice(0, maxResults);
}

// Text with the words of the query marked.
function markWords(text, words) {
  const pieces = document.createDocumentFragment(), lower = text.toLowerCase();
  let end = 0;
  while (end < text.length) {
    const next = words.map(word => [lower.indexOf(word, end), word.length]).filter(hit => hit[0] >= 0).sort((a, b) => a[0] - b[0])[0];
    if (!next)
      break;
    const mark = document.createElement("mark");
    mark.textContent = text.slice(next[0], next[0] + next[1]);
    pieces.append(text.slice(end, next[0]), mark);
    end = next[0] + next[1];
  }
  pieces.append(text.slice(end));
  return pieces;
}

// The surroundings of the first word that the text has.
function makeSnippet(section, words) {
  const text = section[3], hits = words.map(word => section.lower[2].indexOf(word)).filter(at => at >= 0);
  let begin = hits.length ? Math.max(0, Math.min(...hits) - 60) : 0;
  if (begin > 0)
    begin = text.indexOf(" ", begin) + 1;
  return (begin > 0 ? "... " : "") + text.slice(begin, begin + 170) + (begin + 170 < text.length ? " ..." : "");
}

function makeResult({section, words}) {
  const page = searchIndex.pages[section[0]], link = document.createElement("a");
  link.href = root + page[0] + (section[1] ? "#" + section[1] : "");
  const title = document.createElement("b"), place = document.createElement("small"), snippet = document.createElement("p");
  title.append(markWords(section[2] || page[1], words));
  place.textContent = section[2] === page[1] ? page[2] : page[1] + ", " + page[2];
  snippet.append(markWords(makeSnippet(section, words), words));
  link.append(title, place, snippet);
  const item = document.createElement("li");
  item.append(link);
  return item;
}

function hideResults() {
  results.hidden = true;
}

async function showResults() {
  const query = input.value;
  if (!query.trim())
    return hideResults();
  await loadIndex();
  if (query !== input.value)
    return; // another letter was typed meanwhile
  const found = findSections(query);
  results.replaceChildren(...found.map(makeResult));
  if (!found.length) {
    const none = document.createElement("li");
    none.className = "none";
    none.textContent = "No page has " + query + ".";
    results.append(none);
  }
  results.hidden = false;
  results.scrollTop = 0;
  choose(0);
}

function choose(number) {
  const links = [...results.querySelectorAll("a")];
  links.forEach((link, i) => link.classList.toggle("chosen", i === number));
  if (links[number])
    links[number].scrollIntoView({block: "nearest"});
}

input.addEventListener("input", showResults);
input.addEventListener("focus", showResults);
input.addEventListener("keydown", event => {
  const links = [...results.querySelectorAll("a")], chosen = links.findIndex(link => link.classList.contains("chosen"));
  if (event.key === "Escape") {
    input.blur();
    hideResults();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    choose(Math.max(0, Math.min(links.length - 1, chosen + (event.key === "ArrowDown" ? 1 : -1))));
  } else if (event.key === "Enter" && links[chosen]) {
    links[chosen].click();
  } else {
    return;
  }
  event.preventDefault();
});
results.addEventListener("click", event => {
  if (event.target.closest("a"))
    hideResults(); // the target may be on this page
});
document.addEventListener("click", event => {
  if (!event.target.closest(".search"))
    hideResults();
});
document.addEventListener("keydown", event => {
  if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.target.closest("input, textarea")) {
    event.preventDefault();
    input.focus();
    input.select();
  }
});
// `index.html#search=all_gather` is a link to a search.
function readHash() {
  if (!location.hash.startsWith("#search="))
    return;
  input.value = decodeURIComponent(location.hash.slice("#search=".length));
  showResults();
}
window.addEventListener("hashchange", readHash);
readHash();

// Code: a button that copies it; of a session of commands the commands alone.

async function copyText(text) {
  if (navigator.clipboard)
    return navigator.clipboard.writeText(text);
  // A page that came over http, and not from this machine, has no clipboard but the old one.
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

for (const block of document.querySelectorAll("main pre")) {
  const frame = document.createElement("div"), button = document.createElement("button");
  frame.className = "code";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    let text = block.querySelector("code").textContent;
    if (block.classList.contains("console"))
      text = text.split("\n").filter(line => line.startsWith("$ ")).map(line => line.slice(2) + "\n").join("");
    await copyText(text);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  block.replaceWith(frame);
  frame.append(block, button);
}

// The menu of a phone; the page that is shown is seen in the navigation of a desktop.

const menu = document.querySelector(".menu"), navigation = document.getElementById("navigation");
menu.addEventListener("click", () => {
  menu.setAttribute("aria-expanded", String(navigation.classList.toggle("open")));
});
const current = navigation.querySelector("[aria-current]");
if (current && current.offsetTop > navigation.clientHeight)
  navigation.scrollTop = current.offsetTop - navigation.clientHeight / 2;
