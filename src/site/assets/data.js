// The page's data. Each block is a script, since a page that opens from a folder may not fetch.
'use strict';

const FORMAT = 1;

let head = null;
let fleet = null;

/* Takes a newer head, where a server has one. */
let onHead = null;

/* The blocks asked for, and those that were read. */
const asked = new Map();
const read = new Map();

/* Called by the scripts of blocks. */
window.berth = (key, value) => {
  asked.get(key)?.done(value);
  if (key !== 'head') return;
  if (head) onHead?.(value);
  else { head = value; start(); }
};

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function block(key) {
  if (!asked.has(key)) {
    if (!head.files[key]) return Promise.reject(new Error(`This page has no data ${key}.`));
    const request = {};
    request.answer = new Promise((done, failed) => { request.done = (value) => { request.isDone = true; done(value); }; request.failed = failed; });
    asked.set(key, request);
    const path = `data/${key}.${head.files[key]}.js`;
    const failed = () => { asked.delete(key); read.delete(key); request.failed(new Error(`${path} cannot be read: the page was written anew or is damaged. Load it again.`)); };
    const loaded = () => { if (!request.isDone) failed(); };
    document.head.append(h('script', { src: path, on: { error: failed, load: loaded } }));
  }
  return asked.get(key).answer;
}

function form(key) {
  if (!read.has(key)) read.set(key, block(key).then(inflate).then((bytes) => JSON.parse(new TextDecoder().decode(bytes))));
  return read.get(key);
}

/* FNV-1a: the block of a name. */
function hash(text) {
  let value = 2166136261;
  for (const byte of new TextEncoder().encode(text)) value = Math.imul(value ^ byte, 16777619);
  return value >>> 0;
}

const placementDetails = async (id) => (await form(`p-${hash(id) % head.blocks.placements}`))[id];
const clusterDetails = async (name) => (await form(`c-${hash(name) % head.blocks.clusters}`))[name];
const publicationDetails = async (sequence) => (await form(`n-${Math.floor(sequence / head.blocks.publications)}`))[sequence];
const rolloutDetails = (id) => form(`r-${id}`);

/* Runs of (length, value) as one value for each position. */
function spread(runs, count) {
  const values = new Int32Array(count);
  for (let index = 0, at = 0; index < runs.length; index += 2) { values.fill(runs[index + 1], at, at + runs[index]); at += runs[index]; }
  return values;
}

/* Runs of (first, length) as positions. */
function positions(runs) {
  const found = [];
  for (let index = 0; index < runs.length; index += 2) for (let step = 0; step < runs[index + 1]; step++) found.push(runs[index] + step);
  return found;
}

let fleetOnce = null;
const loadFleet = () => (fleetOnce ??= readFleet().catch((fault) => { fleetOnce = null; throw fault; }));

async function readFleet() {
  const names = await form('names');
  const found = new Fleet(names);
  const blocks = Math.ceil(names.placements.length / head.blocks.rows);
  await Promise.all(Array.from({ length: blocks }, async (_, index) => found.readMap(index, await inflate(await block(`map-${index}`)))));
  fleet = found;
  return found;
}

/* Names, labels, and the states of all copies. */
class Fleet {
  constructor(names) {
    const placements = names.placements.length;
    this.clusters = names.clusters;
    this.clusterStates = spread(names.states, names.clusters.length);
    this.labels = Object.fromEntries(Object.entries(names.labels).map(([key, label]) => [key, { values: label.values, of: spread(label.of, names.clusters.length) }]));
    this.placements = names.placements;
    this.kinds = names.kinds;
    this.kindOf = names.kindOf;
    this.namespaces = names.namespaces;
    this.namespaceOf = spread(names.namespaceOf, placements);
    this.changedBy = names.changedBy;
    this.rollouts = new Map(names.rollouts);
    this.runs = new Array(placements);
    this.names = names.placements.map((name, index) => this.fullName(name, index));
    this.ids = this.names.map((name, index) => `${this.kinds[this.kindOf[index]]}/${name}`);
    this.placementOf = new Map(this.ids.map((id, index) => [id, index]));
    this.clusterOf = new Map(this.clusters.map((name, index) => [name, index]));
    this.searched = [...this.clusters, ...this.ids].map((name) => name.toLowerCase());
  }

  fullName(name, index) {
    const namespace = this.namespaces[this.namespaceOf[index]];
    return namespace ? `${namespace}/${name}` : name;
  }

  /* Reads a block of the map: for each placement the number of runs, then distance, and length and state of each. */
  readMap(block, bytes) {
    let at = 0;
    const next = () => {
      let value = 0, shift = 0, byte;
      do { byte = bytes[at++]; value |= (byte & 127) << shift; shift += 7; } while (byte > 127);
      return value;
    };
    const first = block * head.blocks.rows;
    for (let index = first; index < Math.min(this.placements.length, first + head.blocks.rows); index++) {
      const runs = new Int32Array(next() * 3);
      for (let run = 0, end = 0; run < runs.length; run += 3) {
        const start = end + next(), packed = next();
        runs.set([start, packed >> 3, packed & 7], run);
        end = start + (packed >> 3);
      }
      this.runs[index] = runs;
    }
  }

  /* Calls a function with each copy of a placement: the cluster and the state. */
  eachCopy(placement, visit) {
    const runs = this.runs[placement];
    for (let run = 0; run < runs.length; run += 3) for (let cluster = runs[run]; cluster < runs[run] + runs[run + 1]; cluster++) visit(cluster, runs[run + 2]);
  }

  /* The state of a copy, or -1 where there is none. */
  state(placement, cluster) {
    const runs = this.runs[placement];
    for (let run = 0; run < runs.length; run += 3) if (cluster >= runs[run] && cluster < runs[run] + runs[run + 1]) return runs[run + 2];
    return -1;
  }

  worst(placement) {
    let worst = -1;
    for (let run = 2; run < this.runs[placement].length; run += 3) worst = Math.max(worst, this.runs[placement][run]);
    return worst;
  }

  /* The label that groups columns; without labels all clusters are one group. */
  label(key) {
    return this.labels[key] ?? this.labels[head.keys[0]] ?? { values: ['all clusters'], of: new Int32Array(this.clusters.length) };
  }

  labelsOf(cluster) {
    return head.keys.map((key) => [key, this.labels[key].values[this.labels[key].of[cluster]]]).filter(([, value]) => value);
  }
}
