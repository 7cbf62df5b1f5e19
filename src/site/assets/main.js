// The ways between views, and the keys. Called once the head is here.
'use strict';

const VIEWS = [['', 'Fleet', '#/'], ['rollouts', 'Rollouts', '#/rollouts'], ['pubs', 'Publications', '#/pubs']];
const CHANGE_VIEW = ['change', 'Change', '#/change'];
const VIEW_OF = { change: 'change', r: 'rollouts', rollouts: 'rollouts', n: 'pubs', pubs: 'pubs' };
const GO_TO = { c: '#/change', f: '#/', r: '#/rollouts', p: '#/pubs' };
/* How long a key waits for the second one, in milliseconds. */
const PREFIX = 1200;
let prefixedAt = 0;

function notFound(kind, name) {
  show('Not found', h('div', { class: 'page' }, h('h1', {}, `There is no ${kind} “${name}” in this page.`), h('p', {}, `It may be newer than number ${head.shown.sequence}, or gone. `, link('#/', 'To the fleet'))));
}

function address() {
  const [path, query] = location.hash.replace(/^#/, '').split('?');
  const decode = (part) => { try { return decodeURIComponent(part); } catch { return part; } };
  const [kind = '', ...rest] = (path || '/').split('/').slice(1).map(decode);
  return { kind, rest: rest.join('/'), query: Object.fromEntries(new URLSearchParams(query ?? '')) };
}

/* The numbers of the newest way to a view, and of the newest one that has ended. */
let newest = 0, ended = 0;

async function route({ moved }) {
  const own = (newest += 1);
  view = null;
  const { kind, rest, query } = address();
  const current = VIEW_OF[kind] ?? '';
  byId('nav').replaceChildren(...(head.change ? [CHANGE_VIEW, ...VIEWS] : VIEWS).map(([name, words, href]) => h('a', { href, 'aria-current': current === name ? 'page' : null }, words)));
  const pages = { p: () => placementPage(rest), c: () => clusterPage(rest), r: () => rolloutPage(rest), rollouts: rolloutsPage, n: () => publicationPage(Number(rest)), pubs: publicationsPage, change: changePage };
  try { await (Object.hasOwn(pages, kind) ? pages[kind] : () => fleetPage(query))(); } catch (fault) { show('Fault', h('div', { class: 'page' }, h('h1', {}, 'This view cannot be shown.'), h('p', {}, fault.message))); }
  ended = Math.max(ended, own);
  // A view that waited for its data must not replace a newer one. A newer one that still waits replaces it by itself.
  if (own !== newest) { if (ended === newest) route({ moved: false }); return; }
  if (moved) { scrollTo(0, 0); mainPart().focus({ preventScroll: true }); }
}

function moveInList(step) {
  const links = [...mainPart().querySelectorAll('.items strong a, tr.j')].map((element) => (element.tagName === 'TR' ? element.querySelector('a') : element)).filter(Boolean);
  (links[links.indexOf(document.activeElement) + step] ?? links[0])?.focus();
}

function moveInHistory(step) {
  const { kind, rest } = address();
  if (kind === 'n') location.hash = toPublication(Number(rest) + step);
}

function onMap(event) {
  if (!view?.rowUnits) return;
  view.box.focus();
  view.key(event);
}

function onKey(event) {
  if ((event.ctrlKey || event.metaKey) && event.key === 'k') { event.preventDefault(); openSearch(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]') || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const isSecond = Date.now() - prefixedAt < PREFIX;
  prefixedAt = 0;
  if (isSecond && GO_TO[event.key] && (event.key !== 'c' || head.change)) { event.preventDefault(); location.hash = GO_TO[event.key]; return; }
  const actions = {
    '/': () => { event.preventDefault(); openSearch(); }, g: () => { prefixedAt = Date.now(); }, '?': openHelp,
    j: () => moveInList(1), k: () => moveInList(-1), n: () => onMap(event), N: () => onMap(event),
    t: () => view?.rowUnits && showTable(view), '[': () => moveInHistory(-1), ']': () => moveInHistory(1),
  };
  actions[event.key]?.();
}

function footer() {
  const { sequence, commit, source } = head.shown;
  byId('foot').replaceChildren(h('span', {}, `number ${sequence} · `, commitLink(commit), source ? [' from source ', commitLink(source)] : ''), h('span', {}, 'read-only; changes go through the source'), h('span', {}, h('kbd', {}, '?'), ' keys'));
}

function start() {
  if (head.format !== FORMAT) { byId('foot').textContent = `The data of this page has format ${head.format}, its scripts read ${FORMAT}. Load it again.`; return; }
  byId('find').addEventListener('click', openSearch);
  document.addEventListener('keydown', onKey);
  addEventListener('hashchange', () => route({ moved: true }));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { inks = null; view?.layout(); });
  footer();
  // The page of a change begins with the change.
  if (head.change && !location.hash) history.replaceState(null, '', '#/change');
  route({ moved: false });
}
