// The first view: what differs, what rolls out, what was published last, and the map.
'use strict';

/* The map of the view that is shown. */
let view = null;
/* The items that are shown at once. */
const FIRST_ITEMS = 5;

function asOf() {
  const late = Date.now() / 1000 - head.asOf;
  return h('span', { class: late > 900 ? 'stale' : null }, `as of ${day(head.asOf)} ${clock(head.asOf)} UTC`, late > 900 ? `, ${duration(late)} ago` : '');
}

function summary() {
  const { copies, clusters, silent, oldestReport } = head.numbers, place = [`in ${counted(clusters, 'cluster')}, at `, publicationLink(head.shown.sequence), ', ', asOf(), '.'];
  if (!head.hasReports) return h('p', { class: 'sub' }, `${number(copies)} copies `, place, ' Members’ reports are not part of this page.');
  const bad = sum(WORST_FIRST.filter((state) => !isInOrder(state)).map((state) => head.totals[state]));
  const reported = silent || !oldestReport ? '' : ` Every member reported within ${duration(head.asOf - oldestReport)}.`;
  return h('p', { class: 'sub' }, `${number(copies - bad)} of ${number(copies)} copies are in order, `, place, reported);
}

function attentionItem(item) {
  const cause = item.at || item.cause ? h('p', {}, placeLink(item.at), item.cause ? ` ${item.cause}` : '') : null;
  return h('li', { class: `s${item.state}` }, glyph(item.state, 16),
    h('div', {}, h('strong', {}, link(item.to, item.title)), h('p', {}, item.text)),
    h('div', { class: 'more' }, cause, item.then ? h('p', {}, item.then) : null, item.do ? h('p', {}, h('code', {}, item.do)) : null),
    h('span', { class: 'since' }, item.since ? duration(head.asOf - item.since) : ''));
}

function attentionList() {
  const items = head.attention.map(attentionItem);
  if (items.length <= FIRST_ITEMS) return h('ol', { class: 'items' }, items);
  const rest = items.splice(FIRST_ITEMS - 1);
  const more = button(`${rest.length} more`, (event) => event.target.closest('li').replaceWith(...rest));
  return h('ol', { class: 'items' }, items, h('li', { class: 'rest' }, more));
}

/* The stages of a rollout as small blocks. */
function stageStrip(stages) {
  const blocks = stages.flatMap(({ clusters, assigned, succeeded, failed }, index) => {
    const scale = clusters > 24 ? 24 / clusters : 1, share = (count) => (count ? Math.max(1, Math.round(count * scale)) : 0);
    const parts = [['ok', share(succeeded)], ['fail', share(failed)], ['prog', share(assigned - succeeded - failed)]];
    const rest = Math.max(0, share(clusters) - sum(parts.map(([, count]) => count)));
    const squares = ([name, count]) => Array.from({ length: count }, () => h('i', { class: name }));
    return [index ? h('i', { class: 'gap' }) : null, [...parts, ['', rest]].map(squares)];
  });
  return h('span', { class: 'bar', 'aria-hidden': 'true' }, blocks);
}

function rollingLine(rolling) {
  const isHalted = rolling.state === 'halted';
  return h('li', {}, link(toRollout(rolling.id),
    h('span', {}, rolling.name, ' ', muted(rolling.release ? `release ${rolling.release}` : '')),
    h('span', { class: isHalted ? 'minus' : 'muted' }, isHalted ? 'halted' : `${number(rolling.reached)} of ${number(rolling.picked)}`),
    stageStrip(rolling.stages)));
}

function rollingSection() {
  if (!head.rolling.length) return null;
  const all = head.rolling.length > 4 ? h('li', {}, link('#/rollouts', `all ${number(head.numbers.rolling)}`)) : null;
  return h('section', {}, h('h2', {}, 'Rolling out'), h('ul', { class: 'roll' }, head.rolling.slice(0, 4).map(rollingLine), all));
}

function publicationItem(publication) {
  const held = publication.held ? h('span', {}, ' · ', glyph(HELD, 12), ' held') : null;
  return h('li', {}, link(toPublication(publication.sequence), h('span', {}, publication.title), h('span', { class: 'muted nw' }, ago(publication.published)), muted(`${publication.sequence} `, changedObjects(publication) || !publication.changes ? changeCounts(publication) : '· no object changed', held)));
}

function lastPublications() {
  return h('section', { class: 'last' }, h('h2', {}, 'Published last'), h('ul', { class: 'roll' }, head.publications.slice(0, 3).map(publicationItem)));
}

function fleetPage(query) {
  const count = head.attention.length, hasRolling = head.rolling.length > 0;
  const list = count ? attentionList() : null, last = lastPublications();
  const map = new FleetMap({
    by: head.keys.includes(query.by) ? query.by : head.keys[0] ?? '', is: STATES.indexOf(query.is ?? ''),
    zoom: query.zoom ?? 'auto', mode: query.mode ?? 'health',
  });
  view = map;
  const hint = matchMedia('(hover: none)').matches ? 'Touch a cell to see why.' : ['Point at a cell, or press ', h('kbd', {}, 'n'), ' for the next one that is not in order.'];
  map.reading.append(muted(hint));
  const main = h('div', {}, h('h1', {}, head.sentence), summary(), list, count || hasRolling ? null : last);
  const side = h('div', { class: 'side' }, rollingSection(), count || hasRolling ? last : null);
  show(head.title, h('div', { class: 'fleet' }, h('div', { class: 'lead' }, main, side.childNodes.length ? side : null), mapSection(map)));
  drawMap(map);
}

function mapSection(map) {
  return h('section', { class: 'mapbox', 'aria-label': 'The map' }, mapTools(map), map.reading, map.box);
}

async function drawMap(map) {
  if (!fleet && head.numbers.placements > MOST_ROWS) map.reading.append(groupCounts());
  try { await loadFleet(); } catch (fault) { if (view === map) map.reading.replaceChildren(fault.message); return; }
  if (view !== map) return;
  map.reading.querySelector('.groups')?.remove();
  map.layout();
  if (map.mode === 'wave') loadWaves(map);
}

/* Until the blocks of the map are here: the worst state of each namespace, from the head alone. */
function groupCounts() {
  const worst = head.namespaces.map(([name, counts]) => [name, WORST_FIRST.find((state) => counts[state])]).filter(([, state]) => state != null && !isInOrder(state));
  return h('p', { class: 'groups muted' }, 'Reading the map. Not in order: ', worst.slice(0, 12).map(([name, state]) => h('span', { class: 'nw' }, glyph(state, 12), ` ${name || 'cluster-wide'} `)), worst.length ? '' : 'nothing');
}

/* The buttons above the map. Each shows whether it is pressed. */
function mapTools(map) {
  const chips = WORST_FIRST.filter((state) => state !== PUBLISHED || head.totals[state]).map((state) => stateChip(map, state));
  const choices = [
    ...(head.keys.length > 1 ? [choice('Columns', head.keys, shortKey, () => map.by, (by) => change({ by }))] : []),
    choice('Colour', ['health', 'wave', 'age'], String, () => map.mode, (mode) => change({ mode })),
    choice('Zoom', ['auto', 'groups', 'whole'], String, () => map.zoom, (zoom) => change({ zoom })),
  ];
  const states = h('div', { class: 'chips', role: 'group', 'aria-label': 'States, and how many copies have each' }, chips), legend = h('div', { class: 'chips' });
  const options = h('div', { class: 'opts' }, choices, button('As a table', () => showTable(map)));
  const opener = button('View', () => opener.setAttribute('aria-expanded', options.classList.toggle('open')), { class: 'btn vb', 'aria-expanded': 'false' });
  const tools = h('div', { class: 'tools' }, states, legend, h('span', { class: 'spring' }), opener, options);
  function change(values) { Object.assign(map, values); reset(map, update); }
  function update() {
    states.hidden = map.mode !== 'health';
    legend.hidden = !states.hidden;
    legend.replaceChildren(...flat(modeLegend(map.mode)));
    for (const tool of tools.querySelectorAll('button')) if (tool.isPressed) tool.setAttribute('aria-pressed', tool.isPressed());
  }
  for (const chip of chips) chip.addEventListener('click', () => change({ is: map.is === chip.state ? -1 : chip.state }));
  map.onZoom = update;
  update();
  return tools;
}

function stateChip(map, state) {
  const count = head.totals[state];
  const chip = h('button', { class: `chip${count ? '' : ' zero'}`, type: 'button', disabled: !count }, glyph(state), h('span', {}, STATES[state]), h('b', {}, number(count)));
  return Object.assign(chip, { state, isPressed: () => map.is === state });
}

function choice(label, values, words, current, choose) {
  const option = (value) => Object.assign(h('button', { type: 'button', title: value, on: { click: () => choose(value) } }, words(value)), { isPressed: () => current() === value });
  return h('div', { class: 'seg', role: 'group', 'aria-label': label }, h('span', {}, label), values.map(option));
}

function modeLegend(mode) {
  const swatch = (step, words) => h('span', { class: 'chip' }, svg('svg', { class: 'g', width: 12, height: 12, 'aria-hidden': 'true' }, svg('rect', { width: 12, height: 12, fill: `var(--w${step + 1})` })), words);
  if (mode === 'wave') return [['first stage', 'second', 'third', 'later'].map((words, step) => swatch(step, words)), h('span', { class: 'chip muted' }, 'small: still waits')];
  return [`number ${head.shown.sequence}`, 'the 5 before', 'the 20 before', 'earlier'].map((words, step) => swatch(step, words));
}

/* Lays the map out anew, and keeps what it shows in the address. */
function reset(map, update) {
  Object.assign(map, { openRows: null, openColumns: null, cursor: null });
  map.box.scrollTop = map.box.scrollLeft = 0;
  const query = new URLSearchParams();
  if (map.is >= 0) query.set('is', STATES[map.is]);
  if (head.keys.length && map.by !== head.keys[0]) query.set('by', map.by);
  if (map.mode !== 'health') query.set('mode', map.mode);
  if (map.zoom !== 'auto') query.set('zoom', map.zoom);
  history.replaceState(null, '', `#/${String(query) ? `?${query}` : ''}`);
  update();
  map.layout();
  if (map.mode === 'wave') loadWaves(map);
  announce(`${counted(map.rowCount, 'placement')} and ${counted(map.columnCount, 'cluster')} shown`);
}

async function loadWaves(map) {
  const waves = new Map();
  try {
    for (const [placement, id] of fleet.rollouts) waves.set(placement, new Map((await rolloutDetails(id)).clusters.map((cluster) => [cluster.cluster, cluster])));
  } catch (fault) { map.reading.replaceChildren(fault.message); return; }
  map.waves = waves;
  map.drawSoon();
}

/* The same numbers for those who read them. A second time removes the table. */
function showTable(map) {
  const old = map.box.parentNode.querySelector('.asTable');
  if (old) { old.remove(); return; }
  const rows = map.rowUnits.filter((unit) => unit.ids.length).slice(0, 400).map((unit) => tableRow(map, unit));
  const shown = table('Placements, the states of their copies, and where they are not in order', ['placement', '>copies', ...WORST_FIRST.map((state) => `>${STATES[state]}`), 'where'], rows);
  shown.classList.add('card', 'asTable');
  map.box.after(shown);
  shown.focus();
}

function tableRow(map, unit) {
  const counts = map.counts(unit), totals = STATES.map((_, state) => 0), where = [];
  map.columnUnits.forEach((column, index) => {
    for (let state = 0; state < STATE_COUNT; state++) totals[state] += counts[index * STATE_COUNT + state];
    const state = map.worst(counts, index);
    if (!isInOrder(state)) where.push(`${column.isOne ? column.label : map.columnGroups.find((group) => group.key === column.group).label}: ${STATES[state]}`);
  });
  const name = unit.isOne ? placementLink(fleet.ids[unit.ids[0]]) : unit.label;
  const words = where.slice(0, 6).join('; ') + (where.length > 6 ? `; ${where.length - 6} more` : '');
  return row(name, cell('n', number(sum(totals))), ...WORST_FIRST.map((state) => cell('n', totals[state] ? number(totals[state]) : '')), words);
}
