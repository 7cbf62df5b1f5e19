// Links: to views of the page, and to Git, where the page knows an address; else a command to copy.
'use strict';

const encodePath = (path) => path.split('/').map(encodeURIComponent).join('/');
const toPlacement = (id) => `#/p/${encodePath(id)}`;
const toCluster = (name) => `#/c/${encodeURIComponent(name)}`;
const toPublication = (sequence) => `#/n/${sequence}`;
const toRollout = (id) => `#/r/${encodeURIComponent(id)}`;

const clusterLink = (name) => link(toCluster(name), name);
const shortName = (id) => id.split('/').slice(1).join('/');
const placementLink = (id) => link(toPlacement(id), shortName(id));
const shortKey = (key) => key.split('/').pop();

const publicationOrBefore = (sequence) => (sequence ? publicationLink(sequence) : `before number ${head.from}`);

function publicationLink(sequence) {
  return sequence >= head.from ? link(toPublication(sequence), `number ${sequence}`) : `number ${sequence} or earlier`;
}

/* A file and a line of the source. */
function placeLink(at, commit, text) {
  if (!at || !at[0]) return null;
  const [file, line] = at;
  const label = text ?? (line ? `${file}:${line}` : file);
  const revision = commit ?? head.shown.source;
  if (!head.links || !revision) return h('code', { title: revision ? `git show ${revision.slice(0, 12)}:${file}` : null }, breakable(label));
  const href = fillTemplate(head.links.file, { commit: revision, file: encodePath(file), line: String(line || 1) });
  return safeLink(href, breakable(label));
}

function commitLink(id) {
  if (!id) return '';
  const label = id.slice(0, 10);
  return head.links ? safeLink(fillTemplate(head.links.commit, { commit: id }), label) : h('code', { title: `git show ${id}` }, label);
}

/* Quotes a name for a shell, if the shell would read it as more than a name. */
const shellWord = (name) => (/^[A-Za-z0-9._/-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`);

const fillTemplate = (template, values) => template.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

/* Only addresses of the web become links. */
function safeLink(href, ...children) {
  return /^https?:\/\//.test(href) ? h('a', { class: 'm', rel: 'noreferrer', href }, ...children) : h('code', { title: href }, ...children);
}

/* Names of clusters, the first ones as links. */
function clusterNames(clusters, most = 6) {
  const shown = clusters.slice(0, most).map((cluster, index) => [index ? ', ' : '', clusterLink(fleet.clusters[cluster])]);
  return clusters.length > most ? [shown, ` and ${number(clusters.length - most)} more`] : shown;
}

/* A set of clusters in a few words: `all 10 clusters of region=us-east`, where a label says it shorter. */
function clusterWords(clusters, isPlain = false) {
  if (clusters.length <= 4) return isPlain ? clusters.map((cluster) => fleet.clusters[cluster]).join(', ') : clusterNames(clusters);
  if (clusters.length === fleet.clusters.length) return `all ${number(clusters.length)} clusters`;
  const group = smallestGroup(clusters);
  if (group && group.size === clusters.length) return `all ${number(group.size)} clusters of ${group.name}`;
  const start = group && clusters.length * 2 > group.size ? `${number(clusters.length)} of ${number(group.size)} of ${group.name}` : counted(clusters.length, 'cluster');
  return isPlain ? start : [start, ': ', clusterNames(clusters, 4)];
}

/* The smallest group of a label that has all of these clusters. */
function smallestGroup(clusters) {
  let best = null;
  for (const key of head.keys) {
    const { values, of } = fleet.labels[key], value = of[clusters[0]];
    if (!values[value] || !clusters.every((cluster) => of[cluster] === value)) continue;
    const size = of.reduce((count, other) => count + (other === value), 0);
    if (!best || size < best.size) best = { size, name: `${shortKey(key)}=${values[value]}` };
  }
  return best;
}

const changedObjects = ({ changes }) => (changes ? changes.removed + changes.changed + changes.added : 0);

/* Clusters that a block names, as positions; names that are gone are left out. */
const clusterPositions = (names) => names.map((name) => fleet.clusterOf.get(name)).filter((position) => position != null);

/* Removed, changed and added objects, as far as the page knows them. */
function changeCounts({ changes }) {
  if (!changes) return muted('unknown');
  const { removed, changed, added } = changes;
  const parts = [['minus', '−', removed], ['tilde', '~', changed], ['plus', '+', added]].filter(([, , count]) => count);
  return parts.length ? parts.map(([name, sign, count]) => h('span', { class: name }, `${sign}${number(count)} `)) : muted('0');
}
