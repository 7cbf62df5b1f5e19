// Rollouts: the list, and one rollout over time.
'use strict';

const VERDICTS = { failed: FAILING, progressing: PROGRESSING, succeeded: IN_SYNC, waits: WAITS, leaving: PUBLISHED };
const VERDICT_WORDS = { succeeded: 'in order' };
/* Up to this many clusters, each has a line of its own. */
const MOST_LINES = 90;
const STEPS = [10, 30, 60, 300, 600, 900, 1800, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, DAY, 7 * DAY];

const rolloutState = (state) => (state === 'halted' ? stateWords(FAILING, state) : stateWords(state === 'rolling' ? PROGRESSING : WAITS, state));

function rolloutsPage() {
  const line = (entry) => row(link(toRollout(entry.id), entry.name), cell('n', entry.release ?? ''), rolloutState(entry.state), h('div', { class: 'strip' }, stageStrip(entry.stages)), cell('n', `${number(entry.reached)} of ${number(entry.picked)}`), entry.begun ? when(entry.begun) : '', entry.reason);
  const rows = head.rolling.map(line), more = head.numbers.rolling - rows.length;
  show('Rollouts', h('div', { class: 'page' }, h('h1', {}, rows.length ? `${counted(head.numbers.rolling, 'release')} on the way` : 'No release is on its way.'),
    rows.length ? table('Rollouts', ['workload', '>release', 'state', 'stages', '>reached', 'begun', 'reason'], rows) : null, more > 0 ? h('p', { class: 'muted' }, `${number(more)} more are not listed here; the page of each placement shows its rollout.`) : null, rows.length ? null : h('p', { class: 'muted' }, 'Every workload has one release in all of its clusters.')));
}

async function rolloutPage(id) {
  await loadFleet();
  if (!Object.hasOwn(head.files, `r-${id}`)) { notFound('rollout', id); return; }
  const details = await rolloutDetails(id), end = Math.max(head.asOf, ...details.clusters.map((entry) => entry.judged ?? 0)), begin = (details.begun ?? end) - 60;
  show(`${details.name} release ${details.release ?? ''}`, h('div', { class: 'page' },
    rolloutHead(details), rolloutCall(details), stagesList(details),
    h('section', {}, h('h2', {}, 'Over time'), details.clusters.length <= MOST_LINES ? clusterLines(details, begin, end) : stageCurves(details, begin, end), timeLegend()),
    h('div', { class: 'cols' }, h('section', {}, h('h2', {}, 'Cluster by cluster'), clusterTable(details)), eventsSection(details))));
}

const withVerdict = (details, verdict) => details.clusters.filter((entry) => entry.verdict === verdict);

function rolloutHead(details) {
  const counts = [['succeeded', 'in order'], ['progressing', 'under way'], ['failed', 'failed'], ['waits', 'waiting']].map(([verdict, words]) => `${number(withVerdict(details, verdict).length)} ${words}`);
  return h('div', { class: 'head' }, h('p', { class: 'crumb' }, link('#/rollouts', 'Rollouts'), ' › ', placementLink(details.placement)), h('h1', {}, `Release ${details.release ?? ''} of ${details.name} is ${details.state}`),
    h('p', { class: 'sub' }, `${counts.join(', ')} of ${counted(details.clusters.length, 'cluster')}`, details.lastGood ? `; release ${details.lastGood} is the last good one` : '', details.begun ? ['. Begun ', when(details.begun)] : '', details.strategy ? `. ${details.strategy}, ` : '. ', placeLink(details.at), '.'));
}

function rolloutCall(details) {
  const failed = withVerdict(details, 'failed'), waits = withVerdict(details, 'waits').length, isHalted = details.state === 'halted';
  const notes = details.notes.map((note) => h('p', { class: 'muted' }, note));
  if (!isHalted && !details.reason && !details.next && !notes.length) return null;
  const names = failed.length ? [' ', clusterNames(clusterPositions(failed.map((entry) => entry.cluster))), '.'] : '';
  return h('div', { class: `call ${isHalted ? 's7' : 's3'}` }, h('p', {}, h('b', {}, details.reason || `${counted(waits, 'cluster')} to go`), names),
    details.next ? h('p', { class: 'muted' }, 'The rollout continues at ', `${day(details.next)} ${clock(details.next)} UTC.`) : null, notes,
    isHalted ? h('p', { class: 'muted' }, `${counted(waits, 'cluster')} get nothing more. The rollout continues if the failed clusters recover. A newer release replaces it.`) : null,
    isHalted ? toPaste(`berth rollout abort ${shellWord(details.placement)}`, muted('takes the release back')) : null);
}

function stagesList({ stages }) {
  const tone = ({ failed, clusters, assigned, succeeded }) => (failed ? 'bad' : clusters && succeeded === clusters ? 'done' : assigned ? 'on' : '');
  const tasks = (words, list) => list.map((task) => h('p', { class: 'muted' }, `${words}: ${task}`));
  const entry = (stage) => h('li', { class: `stage ${tone(stage)}` }, h('h3', {}, stage.name || 'all clusters'),
    h('p', {}, `${number(stage.succeeded)} of ${number(stage.clusters)} in order`, stage.failed ? [', ', h('b', { class: 'minus' }, `${stage.failed} failed`)] : '', stage.atATime ? muted(` · ${stage.atATime} at a time`) : ''), tasks('before it', stage.before), tasks('then', stage.after));
  return h('section', {}, h('h2', { class: 'vh' }, 'Stages'), h('ol', { class: 'stages' }, stages.map(entry)));
}

const timeLegend = () => h('p', { class: 'muted legend' }, stateWords(WAITS, 'assigned'), stateWords(IN_SYNC, 'in order'), stateWords(FAILING, 'failed'), h('span', {}, '···· waits for its turn'));

function timeAxis(begin, end, x, height) {
  const step = STEPS.find((entry) => (end - begin) / entry <= 9) ?? 30 * DAY, marks = [];
  for (let time = Math.ceil(begin / step) * step; time < end; time += step) marks.push(svg('line', { class: 'ax', x1: x(time), x2: x(time), y1: 14, y2: height }), svg('text', { x: x(time), y: 10, 'text-anchor': 'middle' }, step >= DAY ? day(time) : clock(time)));
  return marks;
}

/* A line for each cluster: when it was assigned the release, and when its verdict came. */
function clusterLines(details, begin, end) {
  const narrow = innerWidth < 700, width = narrow ? 420 : 1200, left = narrow ? 88 : 150, x = (time) => left + (time - begin) / Math.max(1, end - begin) * (width - left - 14);
  const parts = [];
  let y = 22;
  details.stages.forEach((stage, index) => {
    parts.push(svg('text', { class: 'lbl', x: 0, y: y + 10 }, stage.name || 'all'), svg('text', { x: left - 8, y: y + 10, 'text-anchor': 'end' }, `${stage.succeeded}/${stage.clusters}`));
    y += 17;
    for (const cluster of details.clusters.filter((entry) => (entry.stage ?? 0) === index)) { parts.push(clusterLine(cluster, y + 7.5, { x, left, end })); y += 15; }
    y += 8;
  });
  const label = 'For each cluster: when it was assigned the release, and when it was in order or failed; the table below has the same';
  return chart(width, y, label, [timeAxis(begin, end, x, y), parts]);
}

function clusterLine({ cluster, assigned: last, judged, verdict }, y, { x, left, end }) {
  // A cluster that waits was assigned an earlier release.
  const assigned = verdict === 'waits' ? null : last;
  const start = assigned ? x(assigned) : x(end), stop = judged ? x(judged) : x(end), isBad = verdict === 'failed';
  const name = svg('a', { href: toCluster(cluster) }, svg('text', { x: 10, y: y + 4, class: isBad ? 'halt-t' : null }, cluster.length > 20 ? `${cluster.slice(0, 19)}…` : cluster));
  const wait = svg('line', { class: 'wait', x1: left, x2: Math.max(left, start - 3), y1: y, y2: y });
  if (!assigned) return [name, verdict === 'succeeded' ? svg('rect', { class: 'bok', x: left, y: y - 3, width: x(end) - left, height: 6 }) : wait];
  const way = [svg('rect', { class: 'bprog', x: start, y: y - 3, width: Math.max(2, stop - start), height: 6 }), svg('rect', { class: 'assigned', x: start - 2.5, y: y - 2.5, width: 5, height: 5 })];
  const rest = { x: stop, y: y - 3, width: Math.max(0, x(end) - stop), height: 6 };
  if (verdict === 'succeeded') way.push(svg('rect', { class: 'bok', ...rest }), svg('rect', { class: 'dok', x: stop - 3, y: y - 3, width: 6, height: 6 }));
  if (isBad) way.push(svg('rect', { class: 'bfail tail', ...rest }), svg('rect', { class: 'bfail', x: stop - 5, y: y - 5, width: 10, height: 10 }), svg('path', { class: 'bx', d: `M${stop - 2.4} ${y - 2.4}l4.8 4.8m0-4.8l-4.8 4.8` }));
  return [name, wait, way];
}

/* Many clusters: for each stage, how many were assigned the release and are in order at each moment. */
function stageCurves(details, begin, end) {
  const width = 1200, left = 130, tall = 86, x = (time) => left + (time - begin) / Math.max(1, end - begin) * (width - left - 90), parts = [];
  let y = 22;
  details.stages.forEach((stage, index) => {
    const clusters = details.clusters.filter((entry) => (entry.stage ?? 0) === index), bottom = y + tall;
    const curve = (times) => {
      const step = (time, count) => `H${x(time).toFixed(1)}V${(bottom - (count + 1) / clusters.length * tall).toFixed(1)}`;
      return `M${x(begin)} ${bottom}${times.filter(Boolean).sort((a, b) => a - b).map(step).join('')}H${x(end)}V${bottom}Z`;
    };
    const succeeded = clusters.filter((entry) => entry.verdict === 'succeeded').map((entry) => entry.judged);
    parts.push(svg('text', { class: 'lbl', x: 0, y: y + tall / 2 }, stage.name || 'all'), svg('text', { x: 0, y: y + tall / 2 + 15 }, number(stage.clusters)),
      svg('path', { class: 'bprog', d: curve(clusters.filter((entry) => entry.verdict !== 'waits').map((entry) => entry.assigned)) }), svg('path', { class: 'bok', d: curve(succeeded) }),
      svg('text', { x: x(end) + 8, y: y + tall / 2 }, `${number(stage.succeeded)} in order`), stage.failed ? svg('text', { class: 'halt-t', x: x(end) + 8, y: y + tall / 2 + 15 }, `${stage.failed} failed`) : null);
    y += tall + 16;
  });
  return chart(width, y, 'For each stage: clusters assigned and in order over time; the table below has the same', [timeAxis(begin, end, x, y), parts]);
}

function chart(width, height, label, parts) {
  return h('div', { class: 'wrap', tabindex: 0, role: 'region', 'aria-label': 'Over time' }, svg('svg', { class: 'chart', viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': label }, parts));
}

function clusterTable(details) {
  const urgency = (entry) => ['failed', 'progressing', 'waits', 'succeeded', 'leaving'].indexOf(entry.verdict);
  const stage = (entry) => (entry.stage == null ? (details.stages.length > 1 ? 'not in a stage' : '') : details.stages[entry.stage].name);
  const line = (entry) => row(clusterLink(entry.cluster), stage(entry), stateWords(VERDICTS[entry.verdict], VERDICT_WORDS[entry.verdict]), cell('n', entry.release ?? ''), cell('nw', entry.assigned ? clock(entry.assigned) : ''), cell('nw', entry.assigned && entry.judged ? duration(entry.judged - entry.assigned) : ''), entry.words ?? '');
  const wrap = (rows) => table('Clusters of the rollout', ['cluster', 'stage', 'state', '>release', 'assigned', 'took', 'words'], rows);
  return firstRows([...details.clusters].sort((a, b) => urgency(a) - urgency(b)), 24, line, 'clusters', wrap);
}

function eventsSection({ events }) {
  if (!events.length) return null;
  const line = ([sequence, published, title]) => h('li', {}, h('span', { class: 'num muted' }, clock(published)), ' ', title, ' ', muted(publicationLink(sequence)));
  return h('section', {}, h('h2', {}, 'Its publications'), h('ol', { class: 'events' }, events.slice(-60).map(line)));
}
