// One placement: where it is and why, why not elsewhere, its overrides and its history.
'use strict';

async function placementPage(id) {
  await loadFleet();
  const placement = fleet.placementOf.get(id);
  if (placement == null) { notFound('placement', id); return; }
  const details = await placementDetails(id), copies = [];
  fleet.eachCopy(placement, (cluster, state) => copies.push({ cluster, state }));
  const context = { id, placement, details, copies, reasonOf: spread(details.reasonOf, fleet.clusters.length), exceptionOf: exceptionsByCluster(details) };
  const map = (view = new FleetMap({ rows: [placement] }));
  map.reading.append(muted('Point at a cluster to see why.'));
  show(shortName(id), h('div', { class: 'page' },
    placementHead(context), placementAttention(id), placementRollout(details),
    h('section', { class: 'mapbox', 'aria-label': 'Where it is' }, map.reading, map.box),
    h('div', { class: 'cols' },
      h('section', {}, h('h2', {}, `In ${counted(copies.length, 'cluster')}`), placedTable(context), nextInLine(context)),
      h('div', {}, whySection(context), overridesSection(details))),
    historySection(context)));
  map.layout();
}

function exceptionsByCluster(details) {
  const found = new Map();
  for (const exception of details.exceptions) for (const cluster of positions(exception.clusters)) found.set(cluster, exception);
  return found;
}

function placementHead({ id, details, copies, placement }) {
  const bad = copies.filter(({ state }) => !isInOrder(state)).length;
  const objects = details.objectCount ? `${counted(details.objectCount, 'object')} each` : 'no objects: other placements and consumers read it';
  const listed = details.objects.length ? h('span', { title: details.objects.join('\n') }, objects) : objects;
  return h('div', { class: 'head' }, h('p', { class: 'crumb' }, link('#/', 'Fleet'), ' › ', fleet.kinds[fleet.kindOf[placement]]), h('h1', {}, shortName(id)),
    h('p', { class: 'sub' }, `Goes to ${number(copies.length)} of ${counted(fleet.clusters.length, 'cluster')}`, details.rule ? `: ${details.rule}` : '', '. ', placeLink(details.at), ' · ', listed, ' · ', bad ? `${number(bad)} not in order` : 'all in order'),
    details.condition ? h('p', { class: 'sub' }, details.condition) : null);
}

/* The items of the first view about the placement. */
function placementAttention(id) {
  const items = head.attention.filter((item) => item.to === toPlacement(id));
  return items.map((item) => h('div', { class: `call s${item.state}` }, h('p', {}, h('b', {}, glyph(item.state), ' ', item.title), item.text ? `: ${item.text}` : ''),
    item.cause || item.then ? h('p', { class: 'muted' }, [item.cause, item.then].filter(Boolean).join('; ')) : null, item.do ? toPaste(item.do) : null));
}

function placementRollout({ rollout }) {
  if (!rollout?.id) return null;
  const isHalted = rollout.state === 'halted', line = head.rolling.find((entry) => entry.id === rollout.id);
  return h('div', { class: `call ${isHalted ? 's7' : 's3'}` },
    h('p', {}, h('b', {}, link(toRollout(rollout.id), `Release ${rollout.release ?? ''} is ${rollout.state}`)), rollout.reason ? `: ${rollout.reason}` : '', `. ${number(rollout.reached)} of ${counted(rollout.picked, 'cluster')} have it.`),
    line ? h('p', {}, stageStrip(line.stages)) : null);
}

/* A copy that waits may have no release yet. */
const releaseOf = ({ details }, exception) => (exception ? exception.release : details.rollout?.release) ?? '';
/* Since when copies are in their state, and the publications that their content is from, the most frequent first. */
function sinceOf({ id, details }, exception, clusters) {
  const since = copySince(id, details), counts = new Map();
  for (const sequence of clusters.map(since)) if (sequence !== null) counts.set(sequence, (counts.get(sequence) ?? 0) + 1);
  const all = [...counts].sort((a, b) => b[1] - a[1] || b[0] - a[0]), shown = all.slice(0, 3);
  const from = shown.map(([sequence, count], index) => [index ? ', ' : '', publicationOrBefore(sequence), all.length > 1 ? ` (${number(count)})` : '']);
  return h('p', {}, exception?.since ? [when(exception.since), shown.length ? ' · ' : ''] : '', from, all.length > 3 ? ' …' : '');
}

/* Ranked clusters one by one; others by their condition, however many they are. */
function placedTable(context) {
  return context.details.scored.length ? rankedTable(context) : conditionTable(context);
}

function conditionTable(context) {
  const alike = new Map(), hasReleases = context.details.rollout != null;
  for (const { cluster, state } of context.copies) {
    const exception = context.exceptionOf.get(cluster), key = exception ?? state;
    if (!alike.has(key)) alike.set(key, { state, exception, clusters: [] });
    alike.get(key).clusters.push(cluster);
  }
  const groups = [...alike.values()].sort((a, b) => b.state - a.state || b.clusters.length - a.clusters.length);
  const line = ({ state, exception, clusters }) => row(cell('n', number(clusters.length)), stateWords(state), exception?.words ?? '', ...(hasReleases ? [cell('n', releaseOf(context, exception))] : []), cell('', sinceOf(context, exception, clusters)), listOfClusters(clusters));
  return table(`Clusters that have ${shortName(context.id)}, those alike in one line`, ['>clusters', 'state', 'why', ...(hasReleases ? ['>release'] : []), 'since', 'which'], groups.map(line));
}

function listOfClusters(clusters) {
  return clusters.length <= 4 ? h('span', {}, clusterNames(clusters)) : h('details', { class: 'in' }, h('summary', {}, clusterWords(clusters, true)), namesList(clusters));
}

function namesList(clusters) {
  const rest = clusters.length > 300 ? h('li', { class: 'muted' }, `and ${number(clusters.length - 300)} more`) : null;
  return h('ul', { class: 'names' }, clusters.slice(0, 300).map((cluster) => h('li', {}, clusterLink(fleet.clusters[cluster]))), rest);
}

function rankedTable(context) {
  const { details, copies, exceptionOf } = context, scores = new Map(details.scored.map((entry) => [entry.cluster, entry]));
  const ordered = [...copies].sort((a, b) => b.state - a.state || (scores.get(a.cluster)?.rank ?? 0) - (scores.get(b.cluster)?.rank ?? 0));
  const line = ({ cluster, state }) => {
    const exception = exceptionOf.get(cluster), score = scores.get(cluster);
    return row(clusterLink(fleet.clusters[cluster]), stateWords(state), exception?.words ?? '', cell('n', score?.rank ?? ''), scoreBar(details, score), cell('nw', sinceOf(context, exception, [cluster])));
  };
  const wrap = (rows) => table(`Clusters that have ${shortName(context.id)}`, ['cluster', 'state', 'why', '>rank', 'score', 'since'], rows);
  return [firstRows(ordered, 40, line, 'clusters', wrap), scorerLegend(details)];
}

const totalScore = (details, { scores }) => sum(scores.map((score, index) => score * details.scorers[index].weight));

/* A bar of the parts of a score. Each part is measured from the lowest one of its scorer, since scores may be negative. */
function scoreBar(details, score) {
  if (!score) return '';
  const weighted = (entry) => entry.scores.map((part, index) => part * details.scorers[index].weight);
  const lowest = details.scorers.map((_, index) => Math.min(...details.scored.map((entry) => weighted(entry)[index])));
  const above = (entry) => weighted(entry).map((part, index) => part - lowest[index]);
  const most = Math.max(1, ...details.scored.map((entry) => sum(above(entry))));
  const parts = above(score).map((part) => h('i', { css: { width: `${part / most * 100}%` } }));
  const words = details.scorers.map((scorer, index) => `${scorer.name} ${score.scores[index]} × ${scorer.weight}`).join(' + ');
  return h('span', { class: 'nw', title: words }, h('span', { class: 'score', css: { width: '120px' } }, parts), ` ${totalScore(details, score)}`);
}

function scorerLegend({ scorers }) {
  return h('p', { class: 'muted legend' }, scorers.map((scorer, index) => h('span', {}, svg('svg', { class: 'g', width: 12, height: 12, 'aria-hidden': 'true' }, svg('rect', { width: 12, height: 12, fill: `var(--w${Math.min(4, index + 2)})` })), ` ${scorer.name} × ${scorer.weight}`)));
}

function nextInLine({ placement, details }) {
  const next = details.scored.filter(({ cluster }) => fleet.state(placement, cluster) < 0).slice(0, 8);
  if (!next.length) return null;
  const line = (score) => row(clusterLink(fleet.clusters[score.cluster]), cell('n', score.rank), scoreBar(details, score));
  return [h('h3', { class: 'later' }, 'Next in line'), table('Clusters that would follow', ['cluster', '>rank', 'score'], next.map(line))];
}

function whySection(context) {
  const { details, placement, reasonOf } = context, others = new Map();
  fleet.clusters.forEach((_, cluster) => {
    if (fleet.state(placement, cluster) >= 0) return;
    if (!others.has(reasonOf[cluster])) others.set(reasonOf[cluster], []);
    others.get(reasonOf[cluster]).push(cluster);
  });
  const groups = [...others].sort((a, b) => b[1].length - a[1].length);
  const group = ([reason, clusters]) => h('details', {}, h('summary', {}, details.reasons[reason], h('span', { class: 'n' }, ` · ${number(clusters.length)}`)), namesList(clusters));
  return h('section', {}, h('h2', {}, 'Why here, why not there'), details.funnel.length ? funnelList(details) : null, askWhy(context), groups.map(group));
}

function funnelList(details) {
  const all = fleet.clusters.length;
  const step = ({ rule, by, left, dropped }) => {
    const count = sum(dropped.map(([, number]) => number));
    const why = dropped.length === 1 ? `: ${details.reasons[dropped[0][0]]}` : ` for ${dropped.length} reasons`;
    return h('li', {}, h('span', {}, rule, by ? muted(` (${by})`) : null), h('span', { class: 'fb' }, h('i', { css: { width: `${left / all * 100}%` } })), h('span', { class: 'n' }, number(left)), count ? h('span', { class: 'dr' }, `−${number(count)}${why}`) : null);
  };
  return h('ol', { class: 'funnel' }, step({ rule: 'the fleet', left: all, dropped: [] }), details.funnel.map(step));
}

/* A field that answers why the placement is, or is not, in a cluster. */
function askWhy(context) {
  const answer = h('div', { class: 'ans', role: 'status' });
  const input = h('input', { list: 'clusters', placeholder: 'Why, or why not, in …', 'aria-label': 'Name of a cluster', on: { input: () => answer.replaceChildren(...flat([reasonIn(context, fleet.clusterOf.get(input.value.trim()))])) } });
  return [h('p', { class: 'ask' }, input, h('datalist', { id: 'clusters' }, fleet.clusters.slice(0, 400).map((name) => h('option', { value: name })))), answer];
}

function reasonIn({ placement, details, reasonOf }, cluster) {
  if (cluster == null) return null;
  const state = fleet.state(placement, cluster), score = details.scored.find((entry) => entry.cluster === cluster), name = clusterLink(fleet.clusters[cluster]);
  const start = state < 0 ? h('b', {}, 'Not in ', name, ': ') : h('b', {}, glyph(state), ' In ', name, ': ');
  return [start, details.reasons[reasonOf[cluster]], '. ', score ? [`Rank ${score.rank}, score `, scoreBar(details, score), '. '] : null, 'The rule is at ', placeLink(details.at), '.'];
}

function overridesSection({ overrides, at }) {
  const entry = ({ to, path, before, after, at: place }) => h('div', { class: 'over' }, h('p', {}, h('b', {}, to), ' ', h('span', { class: 'muted m' }, breakable(path)), ' ', placeLink(place)),
    h('div', { class: 'diff' }, before == null ? null : h('del', {}, before), after == null ? null : h('ins', {}, after)));
  const none = at && head.hasSource ? 'None: every cluster has the template as it is.' : 'Unknown without the source.';
  return h('section', { class: 'later' }, h('h2', {}, 'Overrides'), overrides.length ? overrides.map(entry) : h('p', { class: 'muted' }, none));
}

function historySection({ id, details }) {
  const signs = [['minus', '−'], ['tilde', '~'], ['plus', '+']];
  const moves = (counts) => (counts ?? []).map((count, index) => (count ? h('span', { class: signs[index][0] }, `${signs[index][1]}${number(count)} `) : null));
  const line = (entry) => row(cell('num', link(toPublication(entry.sequence), entry.sequence)), when(entry.published), entry.title, cell('n num', moves(entry.moves)), entry.at ? placeLink(entry.at, entry.source) : commitLink(entry.source));
  const rows = details.history.map(line);
  return h('section', {}, h('h2', {}, 'History'), rows.length ? table(`Publications that changed ${shortName(id)}`, ['number', 'when', 'what', '>clusters', 'edit'], rows) : h('p', { class: 'muted' }, `Nothing changed it since number ${head.from}.`));
}
