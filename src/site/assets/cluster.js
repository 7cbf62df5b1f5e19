// One cluster: what is not in order, what it has, and what is known about it.
'use strict';

async function clusterPage(name) {
  await loadFleet();
  const cluster = fleet.clusterOf.get(name);
  if (cluster == null) { notFound('cluster', name); return; }
  const details = await clusterDetails(name), copies = [];
  for (let placement = 0; placement < fleet.placements.length; placement++) {
    const state = fleet.state(placement, cluster);
    if (state >= 0) copies.push({ placement, state });
  }
  copies.sort((a, b) => b.state - a.state || a.placement - b.placement);
  show(name, h('div', { class: 'page' }, clusterHead(name, cluster, details),
    h('div', { class: 'cols' }, h('section', {}, copiesNotInOrder(name, cluster, copies), memberProblems(details), otherCopies(copies)), h('div', {}, aboutCluster(details))),
    clusterHistory(name, details)));
}

function clusterHead(name, cluster, details) {
  const state = fleet.clusterStates[cluster], { applied, published, reported, interval } = details;
  const behind = applied && published && applied < published ? ` of ${published}` : '';
  const parts = [stateWords(state, details.state ?? STATES[state]), '. ', applied ? `It has applied number ${applied}${behind}` : 'It has applied nothing yet', reported ? [', and reported ', when(reported)] : '', '. ', interval ? `It reports every ${duration(interval)}. ` : '', details.at.map((at) => [placeLink(at), ' '])];
  return h('div', { class: 'head' }, h('p', { class: 'crumb' }, link('#/', 'Fleet'), ' › cluster'), h('h1', {}, name), h('p', { class: 'sub' }, head.hasReports ? parts : details.at.map((at) => [placeLink(at), ' '])),
    details.words.length ? h('div', { class: `call s${state}` }, details.words.map((words) => h('p', {}, words))) : null);
}

const needsWords = ({ state }) => state > WAITS;

function copiesNotInOrder(name, cluster, copies) {
  const bad = copies.filter(needsWords).slice(0, 60);
  if (!bad.length) return null;
  const line = ({ placement, state }) => {
    const words = cell('muted');
    copyReason(fleet.ids[placement], cluster, state).then((reason) => words.append(...flat(reason)), (fault) => words.append(fault.message));
    return row(placementLink(fleet.ids[placement]), stateWords(state), words);
  };
  return [h('h2', {}, 'Not in order'), table(`What is not in order in ${name}`, ['placement', 'state', 'why'], bad.map(line))];
}

function memberProblems({ problems, problemCount }) {
  if (!problems.length) return null;
  const line = ([object, words]) => row(object, words), more = problemCount > problems.length ? h('p', { class: 'muted' }, `and ${number(problemCount - problems.length)} more`) : null;
  return [h('h2', { class: 'later' }, 'In the words of its member'), table('Problems of objects', ['object', 'problem'], problems.map(line)), more];
}

function otherCopies(copies) {
  const rest = copies.filter((copy) => !needsWords(copy)), byNamespace = new Map();
  if (!rest.length && copies.length) return null;
  for (const copy of rest) {
    const namespace = fleet.namespaces[fleet.namespaceOf[copy.placement]] || 'cluster-wide';
    if (!byNamespace.has(namespace)) byNamespace.set(namespace, []);
    byNamespace.get(namespace).push(copy);
  }
  const item = ({ placement, state }) => h('li', {}, glyph(state, 12), ' ', link(toPlacement(fleet.ids[placement]), fleet.placements[placement]));
  const group = ([namespace, list]) => h('details', { open: list.length <= 12 && rest.length < 60 }, h('summary', {}, namespace, h('span', { class: 'n' }, ` · ${list.length}`)), h('ul', { class: 'names' }, list.map(item)));
  const title = `${rest.length < copies.length ? 'The other ' : ''}${counted(rest.length, 'placement')} it has`;
  return [h('h2', { class: rest.length < copies.length ? 'later' : null }, title), [...byNamespace].map(group)];
}

function aboutCluster(details) {
  const tags = (values) => h('dd', { class: 'tags' }, Object.entries(values).map(([key, value]) => h('span', { class: 'tag' }, `${key}=${value}`)));
  const pair = (name, value) => [h('dt', {}, name), value];
  const taints = details.taints.length ? details.taints.map(({ words, since }) => h('p', {}, h('span', { class: 'tag warn' }, words), since ? [' since ', when(since)] : '')) : 'none';
  return h('section', { class: 'card' }, h('h2', {}, 'About it'), h('dl', { class: 'kv' },
    head.hasSource ? pair('labels', tags(details.labels)) : null,
    Object.keys(details.reportedLabels).length ? pair('reported', tags(details.reportedLabels)) : null,
    head.hasSource ? pair('taints', h('dd', {}, taints)) : null,
    details.applier ? pair('applied by', h('dd', {}, details.applier)) : null,
    details.objects != null ? pair('objects', h('dd', {}, number(details.objects))) : null,
    details.facts.map(([name, value]) => pair(breakable(shortKey(name)), h('dd', {}, value)))));
}

const MOVES = { leaves: ['minus', '−'], changes: ['tilde', '~'], joins: ['plus', '+'] };

function clusterHistory(name, { history }) {
  const move = (event) => [h('span', { class: MOVES[event.move][0] }, `${MOVES[event.move][1]} `), placementLink(event.placement), event.held ? ' (held)' : ''];
  const line = (event) => row(cell('num', link(toPublication(event.sequence), event.sequence)), when(event.published), event.title, move(event));
  return h('section', {}, h('h2', {}, 'Its publications'), history.length ? table(`Publications that changed ${name}`, ['number', 'when', 'what', 'for it'], history.map(line)) : h('p', { class: 'muted' }, 'No publication whose causes this page has changed this cluster.'));
}
