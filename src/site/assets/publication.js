// Publications: the list, and one of them in the order of harm: held first, then removals.
'use strict';

function publicationsPage() {
  const shown = h('div', {}, publicationsTable(head.publications)), oldest = head.publications.at(-1)?.sequence ?? head.from;
  const more = button('Earlier', () => earlierPublications(oldest).then((earlier) => {
    more.remove();
    shown.replaceChildren(publicationsTable([...head.publications, ...earlier]));
  }, (fault) => more.replaceWith(fault.message)));
  show('Publications', h('div', { class: 'page' }, h('h1', {}, 'Publications'), shown, oldest > head.from ? h('p', {}, more) : null));
}

/* Reads the publications before one, the newest first. */
async function earlierPublications(oldest) {
  const earlier = [], size = head.blocks.publications;
  for (let block = Math.floor((oldest - 1) / size); block >= Math.floor(head.from / size); block--) {
    const known = Object.values(await form(`n-${block}`)).filter((publication) => publication.sequence < oldest);
    earlier.push(...known.sort((a, b) => b.sequence - a.sequence).map((publication) => ({ ...publication, held: publication.held.length })));
  }
  return earlier;
}

function publicationsTable(all) {
  const most = Math.max(1, ...all.map(changedObjects));
  const line = (publication) => row(cell('num', link(toPublication(publication.sequence), publication.sequence)), when(publication.published), [publication.title, ' ', publication.held ? h('span', { class: 'nw' }, glyph(HELD, 13), ' held') : null],
    cell('n num', changeCounts(publication)), h('span', { class: 'score', css: { width: '90px' } }, h('i', { css: { width: `${changedObjects(publication) / most * 100}%` } })), cell('n', publication.changes ? number(publication.changes.clusters) : ''), commitLink(publication.source));
  return table('Publications, newest first', ['number', 'when', 'what', '>objects', 'size', '>clusters', 'source'], all.map(line));
}

async function publicationPage(sequence) {
  await loadFleet();
  const isKnown = sequence >= head.from && sequence <= head.shown.sequence, publication = isKnown ? await publicationDetails(sequence) : null;
  if (!publication) { notFound('publication', sequence); return; }
  const placements = touchedPlacements(publication), map = placements.length && placements.length < 40 ? new FleetMap({ rows: placements }) : null;
  view = map;
  map?.reading.append(muted('The placements that it changed, in their current state.'));
  show(`number ${sequence}`, h('div', { class: 'page' }, publicationHead(publication), publication.held.map(heldCall),
    h('div', { class: 'cols' }, publication.sections ? causesSection(publication) : messageSection(publication), recordSection(publication)),
    map ? h('section', { class: 'mapbox', 'aria-label': 'The placements that it changed, in their current state' }, map.reading, map.box) : null));
  map?.layout();
}

function touchedPlacements(publication) {
  const ids = (publication.sections ?? []).flatMap((section) => section.consequences).flatMap((consequence) => consequence.places).flatMap((place) => place.placements);
  return [...new Set([...ids, ...publication.held.map((held) => held.placement)])].map((id) => fleet.placementOf.get(id)).filter((placement) => placement != null);
}

function publicationHead(publication) {
  const { sequence, changes } = publication, { removed, changed, added, clusters } = changes ?? {}, parts = [removed ? `${counted(removed, 'object')} removed` : '', changed ? `${number(changed)} changed` : '', added ? `${number(added)} added` : ''].filter(Boolean);
  const neighbours = [sequence > head.from ? link(toPublication(sequence - 1), `‹ ${sequence - 1}`) : '', ' ', sequence < head.shown.sequence ? link(toPublication(sequence + 1), `${sequence + 1} ›`) : ''];
  return h('div', { class: 'head' }, h('p', { class: 'crumb' }, link('#/pubs', 'Publications'), ' › ', neighbours), h('h1', {}, `Number ${sequence}: ${publication.title}`),
    h('p', { class: 'sub' }, parts.length ? `${parts.join(', ')} in ${counted(clusters, 'cluster')}. ` : changes ? 'No object changed. ' : 'Its changes are not known in this clone. ', 'Published ', when(publication.published), ' as ', commitLink(publication.commit), publication.source ? [' from source ', commitLink(publication.source)] : '', '.'));
}

function heldCall({ placement, approval }) {
  return h('div', { class: 's6 call' }, h('p', {}, h('b', {}, glyph(HELD), ' Held: ', placementLink(placement)), '. Every cluster keeps what it has; the rest is published.'),
    h('p', { class: 'muted' }, 'To reject it, undo the edit in the source. To approve exactly this removal, end a commit’s message on the source branch with'), toPaste(approval));
}

const HARM = { leaves: 0, changes: 2, joins: 3 };
const harm = (section) => Math.min(9, ...section.consequences.map((consequence) => HARM[consequence.move] - (consequence.held ? .5 : 0)));

function causesSection(publication) {
  const sections = [...publication.sections].sort((a, b) => harm(a) - harm(b));
  const part = (section) => h('div', { class: 'cause' }, h('div', {}, causesOf(section, publication.source)),
    h('ul', { class: 'cons' }, section.consequences.map(consequenceItem), section.replicas.map(replicasItem)));
  const idle = publication.idle.length ? [h('h3', { class: 'later' }, 'Edits that changed no cluster'), publication.idle.slice(0, 20).map((cause) => causeWords(cause, publication.source))] : null;
  return h('section', {}, h('h2', {}, 'Cause and consequence, removals first'), sections.map(part), sections.length ? null : h('p', { class: 'muted' }, 'Decided again, with the same result.'), idle);
}

/* The edits of a section, and how they relate. */
function causesOf({ causes, how }, source) {
  return [causes.map((cause) => causeWords(cause, source)), how ? muted(how) : causes.length ? null : muted('the cause is not known')];
}

function causeWords({ words, at, changes }, source) {
  return h('div', { class: 'why' }, at ? h('p', {}, placeLink(at, source), changes > 1 ? muted(` and ${changes - 1} more like it`) : '') : null, h('p', { class: 'm' }, breakable(words)));
}

function consequenceItem(consequence) {
  const [tone, sign] = MOVES[consequence.move], verb = { leaves: 'leaves', changes: 'changes in', joins: 'joins' }[consequence.move];
  const count = sum(consequence.objects), reasons = consequence.reasons.filter(([, words]) => words);
  const place = ({ placements, clusters, count: all }) => h('p', {}, placements.slice(0, 6).map((id, index) => [index ? ', ' : '', placementLink(id)]), placements.length > 6 ? ` and ${number(placements.length - 6)} more` : '', ` ${verb} `, placeWords(clusters, all));
  return h('li', {}, h('span', { class: `sg ${tone}`, 'aria-hidden': 'true' }, consequence.held ? glyph(HELD) : sign), h('div', {},
    consequence.held ? h('p', {}, 'held:') : null, consequence.places.map(place),
    count ? h('p', { class: 'muted' }, counted(count, 'object'), consequence.orphaning ? ', which the clusters keep' : '') : null,
    reasons.map(([clusters, words]) => h('p', { class: 'muted' }, reasons.length > 1 ? `${number(clusters)}: ${words}` : words)), consequence.details.map(objectDetail)));
}

/* The clusters of a change; the list of a block may have only the first ones. */
function placeWords(names, count) {
  const clusters = clusterPositions(names);
  return clusters.length === names.length && names.length === count ? clusterWords(clusters) : `${counted(count, 'cluster')}: ${names.slice(0, 6).join(', ')}${count > 6 ? ' …' : ''}`;
}

const replicasItem = (words) => h('li', {}, h('span', { class: 'sg tilde' }, '~'), h('p', {}, words));

function objectDetail({ change, name, fields }) {
  const field = ({ path, before, after }) => h('div', { class: 'diff' }, muted(breakable(path)), before == null ? null : h('del', {}, before), after == null ? null : h('ins', {}, after));
  return h('div', {}, h('p', { class: 'muted' }, `${name} ${change}`), fields.slice(0, 20).map(field), fields.length > 20 ? muted(`and ${fields.length - 20} more fields`) : null);
}

/* Without traced causes, the message of its commit. */
function messageSection(publication) {
  return h('section', {}, h('h2', {}, 'What it changed'), h('pre', {}, publication.message), publication.sequence > 1 ? toPaste(`berth diff ${publication.sequence - 1}..${publication.sequence}`, muted('shows causes and consequences')) : null);
}

function recordSection(publication) {
  const pair = (name, ...value) => [h('dt', {}, name), h('dd', {}, ...value)];
  return h('section', { class: 'card' }, h('h2', {}, 'Record'), h('dl', { class: 'kv' }, publication.digest ? pair('digest', h('span', { class: 'm' }, publication.digest)) : null, publication.parent ? pair('parent', commitLink(publication.parent)) : null,
    publication.rollback ? pair('goes back to', commitLink(publication.rollback)) : null, pair('approvals used', publication.approvals.length ? publication.approvals.map((approval) => h('p', { class: 'm' }, approval)) : 'none'),
    publication.sequence > 1 ? pair('repeat', h('code', {}, `berth diff ${publication.sequence - 1}..${publication.sequence}`)) : null, pair('prove', h('code', {}, `berth verify ${publication.commit.slice(0, 12)}`))));
}
