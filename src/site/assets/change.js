// A change that is not published yet: its first step beside its end, by the edits behind both.
'use strict';

async function changePage() {
  if (!head.change) { show('Not found', h('div', { class: 'page' }, h('h1', {}, 'This page is not that of a change.'), h('p', {}, link('#/', 'To the fleet')))); return; }
  await loadFleet();
  const change = await form('change'), sections = change.rows.flatMap(({ now, end }) => [now, end]);
  const placements = touchedPlacements({ sections, held: change.held }), map = placements.length && placements.length < 40 ? new FleetMap({ rows: placements }) : null;
  view = map;
  map?.reading.append(muted('The placements that it changes, in their current state.'));
  show(head.change.title, h('div', { class: 'page' }, changeHead(change), change.held.map(heldCall),
    h('section', {}, h('h2', {}, 'Cause and consequence, removals first'), stepsTable(change)),
    change.remarks.map(remarkSection),
    map ? h('section', { class: 'mapbox', 'aria-label': 'The placements that it changes, in their current state' }, map.reading, map.box) : null));
  map?.layout();
}

function changeHead({ title, words, now, end, held }) {
  return h('div', { class: 'head' }, h('p', { class: 'crumb' }, 'Not published yet'), h('h1', {}, title), h('p', { class: 'sub m' }, breakable(words.replaceAll('`', ''))),
    h('p', { class: 'sub' }, JSON.stringify(now) === JSON.stringify(end) ? ['At once: ', sideCounts(end)] : ['First step: ', sideCounts(now), ' In the end: ', sideCounts(end)], held.length ? ' What is held is not counted.' : ''));
}

function sideCounts(changes) {
  return [changeCounts({ changes }), ` objects in ${counted(changes.clusters, 'cluster')}.`];
}

/* One row for each set of edits. Where the first step is also the end, the row says it once. */
function stepsTable({ rows, idle, source }) {
  const sorted = [...rows].sort((a, b) => rowHarm(a) - rowHarm(b));
  const line = ({ causes, how, now, end }) => h('div', { class: 'cause' },
    h('div', {}, causesOf({ causes, how }, source)),
    JSON.stringify(now) === JSON.stringify(end) ? step('at once', now) : h('div', { class: 'steps' }, step('first step', now), step('in the end', end)));
  const rest = idle.length ? [h('h3', { class: 'later' }, 'Edits that change no cluster'), idle.slice(0, 20).map((cause) => causeWords(cause, source))] : null;
  return [sorted.map(line), sorted.length ? null : h('p', { class: 'muted' }, 'No cluster gets another object.'), rest];
}

const rowHarm = ({ now, end }) => Math.min(harm(now), harm(end));

function step(name, { consequences, replicas }) {
  const items = [consequences.map(consequenceItem), replicas.map(replicasItem)];
  return h('div', {}, h('p', { class: 'muted' }, name), consequences.length + replicas.length ? h('ul', { class: 'cons' }, items) : h('p', {}, 'nothing changes'));
}

const MARKS = { '-': 'minus', '~': 'tilde', '+': 'plus', '!': 'bang', '=': 'bang' };

function remarkSection({ heading, lines }) {
  const line = ([mark, words]) => h('li', {}, h('span', { class: `sg ${MARKS[mark] ?? ''}` }, mark === '-' ? '−' : mark), h('p', { class: 'kept' }, breakable(words)));
  return h('section', {}, h('h2', {}, heading), h('ul', { class: 'cons' }, lines.map(line)));
}
