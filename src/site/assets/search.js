// Search: two keys to any cluster, placement, publication or state. And the list of keys.
'use strict';

const MOST_HITS = 8;
let palette = null;

function openSearch() {
  palette?.remove();
  let items = [], chosen = 0;
  const input = h('input', { placeholder: 'Cluster, placement, number, is:failing, region=…', 'aria-label': 'Search', role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'hits', autocomplete: 'off', spellcheck: 'false' });
  const list = h('ul', { id: 'hits', role: 'listbox', 'aria-label': 'Results' });
  const go = (index) => { if (items[index]) { palette.close(); location.hash = items[index].to; } };
  const choose = (index) => {
    chosen = index;
    [...list.children].forEach((entry, at) => entry.setAttribute('aria-selected', at === chosen));
    list.children[chosen]?.scrollIntoView({ block: 'nearest' });
    if (items.length) input.setAttribute('aria-activedescendant', `hit-${chosen}`); else input.removeAttribute('aria-activedescendant');
  };
  const find = () => { items = searchResults(input.value.trim().toLowerCase()); list.replaceChildren(...items.map((item, index) => hitLine(item, index, go, choose))); choose(0); };
  input.addEventListener('input', find);
  input.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && items.length) { event.preventDefault(); choose((chosen + step + items.length) % items.length); }
    if (event.key === 'Enter') { event.preventDefault(); go(chosen); }
  });
  palette = dialog({ class: 'pal', 'aria-label': 'Search' }, input, list, h('div', { class: 'hint' }, 'Arrows choose, Enter opens, Esc closes.'));
  find();
  loadFleet().then(find, () => {});
}

function dialog(attributes, ...children) {
  const shown = h('dialog', attributes, children);
  shown.addEventListener('click', (event) => { if (event.target === shown) shown.close(); });
  shown.addEventListener('close', () => shown.remove());
  document.body.append(shown);
  shown.showModal();
  return shown;
}

function hitLine(item, index, go, choose) {
  const { name, at = -1, length = 0 } = item;
  const marked = at < 0 ? name : [name.slice(0, at), h('mark', {}, name.slice(at, at + length)), name.slice(at + length)];
  return h('li', { role: 'option', id: `hit-${index}`, 'aria-selected': 'false', on: { click: () => go(index), mousemove: () => choose(index) } },
    h('span', { class: 't' }, item.kind), h('span', {}, item.state == null ? null : [glyph(item.state, 13), ' '], marked), muted(item.more ?? ''));
}

function searchResults(query) {
  if (!query) return firstResults();
  return [...stateResults(query), ...numberResults(query), ...(fleet ? [...labelResults(query), ...nameResults(query)] : [])];
}

const stateItem = (state) => ({ kind: 'map', name: `is:${STATES[state]}`, state, more: number(head.totals[state]), to: `#/?is=${encodeURIComponent(STATES[state])}` });

function firstResults() {
  const views = [['Fleet', '#/', 'g f'], ['Rollouts', '#/rollouts', 'g r'], ['Publications', '#/pubs', 'g p']].map(([name, to, more]) => ({ kind: 'view', name, to, more }));
  const rolling = head.rolling.slice(0, 3).map((entry) => ({ kind: 'rollout', name: `${entry.name} release ${entry.release ?? ''}`, to: toRollout(entry.id) }));
  return [...views, ...WORST_FIRST.filter((state) => !isInOrder(state) && head.totals[state]).map(stateItem), ...rolling];
}

function stateResults(query) {
  return query.startsWith('is:') ? WORST_FIRST.filter((state) => STATES[state].startsWith(query.slice(3))).map(stateItem) : [];
}

function numberResults(query) {
  const sequence = /^\d+$/.test(query) ? Number(query) : NaN;
  return sequence >= head.from && sequence <= head.shown.sequence ? [{ kind: 'number', name: query, to: toPublication(sequence) }] : [];
}

function labelResults(query) {
  const [name, value] = query.split('=');
  if (value === undefined) return [];
  return head.keys.filter((key) => key === name || shortKey(key) === name).flatMap((key) => {
    const { values, of } = fleet.labels[key];
    const found = values.map((entry, index) => [entry, index]).filter(([entry]) => entry && entry.toLowerCase().startsWith(value)).slice(0, MOST_HITS);
    return found.map(([entry, index]) => ({ kind: 'label', name: `${shortKey(key)}=${entry}`, more: counted(of.reduce((count, each) => count + (each === index), 0), 'cluster'), to: `#/?by=${encodeURIComponent(key)}` }));
  });
}

/* Names that begin with the query come first, then those with a part that does. */
function nameResults(query) {
  const hits = [];
  fleet.searched.forEach((name, index) => {
    const at = name.indexOf(query);
    if (at >= 0) hits.push({ rank: at === 0 ? 0 : /[/\-.]/.test(name[at - 1]) ? 1 : 2, size: name.length, index, at });
  });
  hits.sort((a, b) => a.rank - b.rank || a.size - b.size || a.index - b.index);
  const clusters = hits.filter((hit) => hit.index < fleet.clusters.length).slice(0, MOST_HITS), placements = hits.filter((hit) => hit.index >= fleet.clusters.length).slice(0, MOST_HITS);
  return [...clusters.map((hit) => clusterHit(hit, query)), ...placements.map((hit) => placementHit(hit, query))];
}

function clusterHit({ index, at }, query) {
  return { kind: 'cluster', name: fleet.clusters[index], at, length: query.length, state: fleet.clusterStates[index], more: fleet.labelsOf(index)[0]?.[1] ?? '', to: toCluster(fleet.clusters[index]) };
}

function placementHit({ index, at }, query) {
  const placement = index - fleet.clusters.length, worst = fleet.worst(placement);
  return { kind: 'placement', name: fleet.ids[placement], at, length: query.length, state: worst < 0 ? null : worst, to: toPlacement(fleet.ids[placement]) };
}

const KEYS = [['/', 'search'], ['g f', 'the fleet'], ['g r', 'rollouts'], ['g p', 'publications'], ['j k', 'next and previous row; on the map, down and up'], ['n N', 'next and previous cell that is not in order'], ['Enter', 'open'], ['-', 'close a group of the map'], ['t', 'the map as a table'], ['[ ]', 'previous and next publication'], ['?', 'this list'], ['Esc', 'close']];

function openHelp() {
  const line = ([keys, words]) => [h('dt', {}, keys.split(' ').map((key, index) => [index ? ' ' : '', h('kbd', {}, key)])), h('dd', {}, words)];
  const shown = dialog({ class: 'help', 'aria-labelledby': 'keys' }, h('h2', { id: 'keys' }, 'Keys'), h('dl', {}, KEYS.map(line)), h('p', {}, button('Close', () => shown.close())));
}
