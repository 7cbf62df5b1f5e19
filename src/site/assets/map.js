// The map of placements and clusters: what it shows, and how it answers. map-draw.js draws it.
'use strict';

const STATE_COUNT = STATES.length;
/* Beyond this many, rows and columns are groups until they are opened. */
const MOST_ROWS = 130, MOST_COLUMNS = 160, MOST_NARROW_COLUMNS = 90;
/* The largest group of columns that opens at once. */
const MOST_OPENED = 1200;
/* The size of a cell where everything is in one picture. */
const WHOLE = 3;

class FleetMap {
  /* rows and columns: positions, or null for all. by: a label. mode: health, wave or age. zoom: auto, groups or whole.
     is: the only state to show, or -1. */
  constructor(options = {}) {
    Object.assign(this, { rows: null, columns: null, by: head.keys[0] ?? '', mode: 'health', zoom: 'auto', is: -1 }, options);
    Object.assign(this, { openRows: null, openColumns: null, cursor: null, hovered: null, counted: new Map(), waves: null });
    this.canvas = h('canvas', { 'aria-hidden': 'true' });
    this.room = h('div', { class: 'room' });
    const label = 'Map of placements by clusters. Arrow keys move, n goes to the next cell that is not in order, Enter opens it, t shows a table.';
    this.box = h('div', { class: 'map', tabindex: 0, role: 'application', 'aria-roledescription': 'map', 'aria-label': label }, this.room, this.canvas);
    this.reading = h('div', { class: 'read' });
    this.pen = this.canvas.getContext('2d', { alpha: false });
    this.listen();
  }

  listen() {
    const on = (event, handler, options) => this.box.addEventListener(event, handler, options);
    on('scroll', () => this.drawSoon(), { passive: true });
    on('mousemove', (event) => { const at = this.hit(event); if (at) { this.hovered = at; this.drawSoon(); this.describe(at); } });
    on('mouseleave', () => { this.hovered = null; this.drawSoon(); if (this.cursor) this.describe(this.cursor); });
    on('click', (event) => { const at = this.hit(event); if (at) { if (at.row >= 0 && at.column >= 0) this.cursor = at; this.open(at); } });
    on('keydown', (event) => this.key(event));
    new ResizeObserver(() => { if (this.box.clientWidth !== this.laidOutWidth) this.layout(); }).observe(this.box);
  }

  /* The rows and columns to show, by group. */
  groups() {
    let rows = this.rows ?? fleet.placements.map((_, index) => index), columns = this.columns ?? fleet.clusters.map((_, index) => index);
    if (this.is >= 0) [rows, columns] = this.only(rows, columns);
    const label = fleet.label(this.by);
    const group = (values, other, of, members) => {
      const groups = values.map((value, key) => ({ key, label: value || other, ids: [] }));
      for (const candidate of members) groups[of[candidate]].ids.push(candidate);
      return groups.filter((candidate) => candidate.ids.length);
    };
    this.columnGroups = group(label.values, 'none', label.of, columns);
    this.rowGroups = group(fleet.namespaces, 'cluster-wide', fleet.namespaceOf, rows);
    this.rowCount = rows.length;
    this.columnCount = columns.length;
  }

  /* Keeps the rows and columns that have a copy in one state. */
  only(rows, columns) {
    const allowed = new Set(columns), kept = new Set();
    const keptRows = rows.filter((placement) => {
      let has = false;
      fleet.eachCopy(placement, (cluster, state) => { if (state === this.is && allowed.has(cluster)) { kept.add(cluster); has = true; } });
      return has;
    });
    return [keptRows, columns.filter((cluster) => kept.has(cluster))];
  }

  layout() {
    if (!fleet) return;
    this.groups();
    this.counted.clear();
    this.bad = this.header = this.picture = null;
    inks = null;
    this.laidOutWidth = this.box.clientWidth;
    const width = this.laidOutWidth || 800;
    this.narrow = width < 620;
    this.isWhole = this.zoom === 'whole';
    this.left = this.narrow ? 0 : this.nameWidth();
    const room = width - this.left - (this.narrow ? 20 : 30);
    if (this.isWhole) this.layoutWhole(room); else { this.layoutColumns(room); this.layoutRows(); }
    this.size(width);
    this.draw();
    this.onLayout?.();
  }

  nameWidth() {
    const lengths = this.rowGroups.slice(0, 400).flatMap((group) => [group.label.length, ...(this.isRowOpen(group) ? group.ids.slice(0, 200).map((placement) => fleet.placements[placement].length + 2) : [])]);
    return Math.round(Math.max(120, Math.min(230, 30 + 6.6 * Math.max(0, ...lengths))));
  }

  isRowOpen(group) {
    return this.openRows ? this.openRows.has(group.key) : this.rowCount <= MOST_ROWS && this.zoom !== 'groups';
  }

  isColumnOpen(group) {
    return this.openColumns ? this.openColumns.has(group.key) : this.columnCount <= (this.narrow ? MOST_NARROW_COLUMNS : MOST_COLUMNS) && this.zoom !== 'groups';
  }

  /* Everything in one picture: rows and columns are cut into parts of equal size. */
  layoutWhole(room) {
    const tall = Math.max(300, Math.min(innerHeight - 200, 900)) - 40;
    const cut = (ids, parts) => Array.from({ length: parts }, (_, part) => ids.slice(Math.floor(part * ids.length / parts), Math.floor((part + 1) * ids.length / parts)));
    const placements = this.rowGroups.flatMap((group) => group.ids), clusters = this.columnGroups.flatMap((group) => group.ids);
    const rows = cut(placements, Math.min(placements.length, Math.floor(tall / WHOLE))), columns = cut(clusters, Math.min(clusters.length, Math.floor(room / WHOLE)));
    const label = fleet.label(this.by);
    this.rowUnits = rows.map((ids, index) => ({ ids, y: index * WHOLE, height: WHOLE, label: '', group: fleet.namespaceOf[ids[0]] }));
    this.columnUnits = columns.map((ids, index) => ({ ids, x: index * WHOLE, width: WHOLE, label: '', group: label.of[ids[0]] }));
    Object.assign(this, { top: 24, wide: columns.length * WHOLE, tall: rows.length * WHOLE });
  }

  layoutColumns(room) {
    const gap = this.narrow ? 3 : 10, free = room - gap * (this.columnGroups.length - 1);
    const open = sum(this.columnGroups.map((group) => (this.isColumnOpen(group) ? group.ids.length : 0)));
    const shut = this.columnGroups.filter((group) => !this.isColumnOpen(group)).length;
    const groupWidth = shut ? Math.max(this.narrow ? 20 : 60, Math.min(150, Math.floor((free - open * 10) / shut))) : 0;
    const widest = this.columnCount <= 8 ? 64 : 26, share = open ? (free - shut * groupWidth) / open : 0;
    this.cellWidth = open ? Math.max(this.narrow ? 3 : 10, Math.min(widest, this.narrow ? share : Math.floor(share))) : 0;
    this.isUpright = this.cellWidth >= 60;
    this.top = 24 + (this.narrow ? 0 : this.namesHeight(open));
    this.columnUnits = [];
    let x = 0;
    for (const group of this.columnGroups) {
      Object.assign(group, { x, open: this.isColumnOpen(group) });
      const parts = group.open ? group.ids.map((cluster) => [[cluster], this.cellWidth, fleet.clusters[cluster]]) : [[group.ids, groupWidth, '']];
      for (const [ids, width, label] of parts) { this.columnUnits.push({ ids, x, width, label, group: group.key, isOne: group.open }); x += width; }
      group.width = x - group.x;
      x += gap;
    }
    this.wide = x - gap;
  }

  namesHeight(open) {
    if (this.isUpright) return 18;
    if (!open || this.cellWidth < 10) return 0;
    const lengths = this.columnGroups.filter((group) => this.isColumnOpen(group)).flatMap((group) => group.ids.slice(0, 300).map((cluster) => fleet.clusters[cluster].length));
    return Math.min(124, Math.ceil(14 + 6.8 * Math.max(...lengths)));
  }

  layoutRows() {
    const few = this.rowCount <= 12 && this.columnCount <= 12;
    const height = this.narrow ? 38 : few ? 28 : this.rowCount === 1 ? 26 : Math.max(16, Math.min(20, this.cellWidth || 22));
    const isSolo = this.rows && (this.rowCount === 1 || this.rowGroups.length === 1);
    this.rowUnits = [];
    let y = 0;
    for (const group of this.rowGroups) {
      group.open = this.isRowOpen(group);
      const title = { label: group.label, count: group.ids.length, group: group.key, isHead: true };
      if (!group.open) { this.rowUnits.push({ ...title, ids: group.ids, y, height: height + (this.narrow ? 0 : 4) }); y += height + (this.narrow ? 0 : 4); continue; }
      if (!isSolo) { this.rowUnits.push({ ...title, ids: [], y, height: 24, isTitle: true }); y += 24; }
      for (const placement of group.ids) { this.rowUnits.push({ ids: [placement], y, height, label: fleet.placements[placement], group: group.key, isOne: true }); y += height; }
      y += isSolo ? 0 : 6;
    }
    this.tall = y;
  }

  size(width) {
    const total = { width: this.left + this.wide + 20, height: this.top + this.tall + 8 };
    const height = Math.min(total.height, this.isWhole ? 2000 : Math.max(320, innerHeight - 220));
    this.unitOf = new Int32Array(fleet.clusters.length).fill(-1);
    this.columnUnits.forEach((unit, index) => { for (const cluster of unit.ids) this.unitOf[cluster] = index; });
    const pixels = (element, name, value) => element.style.setProperty(name, `${value}px`);
    pixels(this.box, 'height', height + 2);
    pixels(this.room, 'width', total.width);
    pixels(this.room, 'height', total.height);
    const density = devicePixelRatio || 1;
    Object.assign(this.canvas, { width: Math.round(width * density), height: Math.round(height * density) });
    pixels(this.canvas, 'width', width);
    pixels(this.canvas, 'height', height);
    Object.assign(this, { viewWidth: width, viewHeight: height, most: this.mostInGroup() });
  }

  /* The largest number of copies behind one cell, which is drawn largest. */
  mostInGroup() {
    if (this.isWhole || this.columnUnits.every((unit) => unit.isOne)) return 1;
    let most = 1;
    for (const unit of this.rowUnits.slice(0, 500)) {
      if (!unit.ids.length) continue;
      const counts = this.counts(unit);
      for (let column = 0; column < this.columnUnits.length; column++) most = Math.max(most, sum(counts.slice(column * STATE_COUNT, (column + 1) * STATE_COUNT)));
    }
    return most;
  }

  /* The number of copies in each state behind each cell of a row. */
  counts(unit) {
    let counts = this.counted.get(unit);
    if (counts) return counts;
    counts = new Int32Array(this.columnUnits.length * STATE_COUNT);
    for (const placement of unit.ids) fleet.eachCopy(placement, (cluster, state) => { const column = this.unitOf[cluster]; if (column >= 0) counts[column * STATE_COUNT + state]++; });
    this.counted.set(unit, counts);
    return counts;
  }

  worst(counts, column) {
    for (let state = STATE_COUNT - 1; state >= 0; state--) if (counts[column * STATE_COUNT + state]) return state;
    return -1;
  }

  /* Returns the row, the column and the group at a point of the screen. */
  hit(event) {
    const bounds = this.canvas.getBoundingClientRect(), px = event.clientX - bounds.left, py = event.clientY - bounds.top;
    const x = px - this.left - (this.narrow ? 10 : 0) + this.box.scrollLeft, y = py - this.top + this.box.scrollTop;
    const row = py < this.top ? -1 : this.rowUnits.findIndex((unit) => y >= unit.y && y < unit.y + unit.height);
    const column = px < this.left ? -1 : this.columnUnits.findIndex((unit) => x >= unit.x && x < unit.x + unit.width);
    const group = py < this.top ? this.columnGroups.find((candidate) => x >= candidate.x && x < candidate.x + candidate.width) : null;
    return row < 0 && column < 0 && !group ? null : { row, column, group, isTop: py < 23 };
  }

  /* Opens what a place stands for: a group, a page, or the words about a cell. */
  open(at) {
    const unit = this.rowUnits[at.row], column = this.columnUnits[at.column];
    if (this.isWhole) { if (unit && column) this.openPart(unit, column); return; }
    if (at.row < 0 && at.group && (at.isTop || !column?.isOne)) { this.toggle('Columns', at.group.key); return; }
    if (at.row < 0) { if (column?.isOne) location.hash = toCluster(column.label); return; }
    if (at.column < 0 && unit?.isOne) { location.hash = toPlacement(fleet.ids[unit.ids[0]]); return; }
    if (unit && (unit.isTitle || at.column < 0)) { this.toggle('Rows', unit.group); return; }
    if (unit && column && !(unit.isOne && column.isOne)) { this.openGroups(unit, column); return; }
    this.drawSoon();
    this.describe(at, { now: true });
  }

  openPart(unit, column) {
    this.zoom = 'auto';
    this.openRows = new Set([unit.group]);
    this.openColumns = new Set([column.group]);
    this.layout();
    const of = (units, id) => units.findIndex((candidate) => candidate.isOne && candidate.ids[0] === id);
    this.stand(of(this.rowUnits, unit.ids[0]), of(this.columnUnits, column.ids[0]));
    this.box.focus();
    this.onZoom?.();
  }

  /* Opens the groups of a cell, and stands on what is worst in them. */
  openGroups(unit, column) {
    if (!unit.isOne) this.toggle('Rows', unit.group, true);
    const group = this.columnGroups.find((candidate) => candidate.key === column.group);
    if (!column.isOne && group.ids.length <= MOST_OPENED) this.toggle('Columns', column.group, true);
    let best = null, top = -1;
    this.rowUnits.forEach((candidate, index) => {
      if (candidate.group !== unit.group || !candidate.ids.length) return;
      const counts = this.counts(candidate);
      this.columnUnits.forEach((other, place) => { if (other.group === column.group && this.worst(counts, place) > top) { top = this.worst(counts, place); best = [index, place]; } });
    });
    if (best) { this.stand(...best); this.describe(this.cursor, { now: true, aloud: true }); this.draw(); }
  }

  toggle(axis, key, onlyOpen = false) {
    const name = `open${axis}`, groups = axis === 'Rows' ? this.rowGroups : this.columnGroups;
    const open = (this[name] ??= new Set(groups.filter((group) => group.open).map((group) => group.key)));
    if (open.has(key) && !onlyOpen) open.delete(key); else open.add(key);
    this.zoom = 'auto';
    this.layout();
    if (axis === 'Rows') this.reveal(key);
    this.onZoom?.();
  }

  reveal(group) {
    const unit = this.rowUnits.find((candidate) => candidate.group === group);
    if (unit && (unit.y < this.box.scrollTop || unit.y > this.box.scrollTop + this.viewHeight - 120)) this.box.scrollTop = Math.max(0, unit.y - 30);
  }

  /* Moves the cursor, and scrolls it into view. */
  stand(row, column) {
    this.cursor = { row, column };
    const unit = this.rowUnits[row], other = this.columnUnits[column], box = this.box;
    if (!unit || !other) return;
    if (unit.y < box.scrollTop) box.scrollTop = unit.y - 24;
    if (unit.y + unit.height > box.scrollTop + this.viewHeight - this.top) box.scrollTop = unit.y + unit.height - this.viewHeight + this.top + 8;
    if (other.x < box.scrollLeft) box.scrollLeft = other.x - 20;
    if (other.x + other.width > box.scrollLeft + this.viewWidth - this.left - 10) box.scrollLeft = other.x + other.width - this.viewWidth + this.left + 20;
  }

  /* Goes to the next cell that is not in order: failing ones first, then held, silent and drifted ones. */
  next(step) {
    this.bad ??= this.cellsNotInOrder();
    const count = this.bad.length, { row, column } = this.cursor ?? {};
    if (!count) return false;
    const at = this.bad.findIndex((candidate) => candidate.row === row && candidate.column === column);
    const found = this.bad[at < 0 ? (step > 0 ? 0 : count - 1) : (at + step + count) % count];
    this.stand(found.row, found.column);
    return true;
  }

  cellsNotInOrder() {
    const found = [];
    this.rowUnits.forEach((unit, row) => {
      if (!unit.ids.length) return;
      const counts = this.counts(unit);
      for (let column = 0; column < this.columnUnits.length; column++) { const state = this.worst(counts, column); if (!isInOrder(state)) found.push({ state, row, column }); }
    });
    return found.sort((a, b) => b.state - a.state || a.row - b.row || a.column - b.column);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.rowUnits) return;
    this.cursor ??= { row: this.rowUnits.findIndex((unit) => unit.ids.length), column: 0 };
    const { row, column } = this.cursor, last = this.columnUnits.length - 1;
    const moves = {
      ArrowUp: () => this.stand(this.rowFrom(row, -1), column), ArrowDown: () => this.stand(this.rowFrom(row, 1), column),
      ArrowLeft: () => this.stand(row, Math.max(0, column - 1)), ArrowRight: () => this.stand(row, Math.min(last, column + 1)),
      Home: () => this.stand(row, 0), End: () => this.stand(row, last),
      PageUp: () => this.stand(this.rowFrom(row, -20), column), PageDown: () => this.stand(this.rowFrom(row, 20), column),
      n: () => this.next(1) || announce('every cell here is in order'), N: () => this.next(-1) || announce('every cell here is in order'),
      Enter: () => this.open({ ...this.cursor }), '+': () => this.open({ ...this.cursor }),
      '-': () => this.rowUnits[row] && this.toggle('Rows', this.rowUnits[row].group),
    };
    Object.assign(moves, { k: moves.ArrowUp, j: moves.ArrowDown, h: moves.ArrowLeft, l: moves.ArrowRight });
    if (!moves[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    moves[event.key]();
    this.drawSoon();
    this.describe(this.cursor, { now: event.key === 'Enter', aloud: true });
  }

  /* The row some steps away; titles of groups have no cells. */
  rowFrom(row, step) {
    const last = this.rowUnits.length - 1, way = Math.sign(step);
    let found = Math.max(0, Math.min(last, row + step));
    while (this.rowUnits[found + way] && !this.rowUnits[found].ids.length) found += way;
    return this.rowUnits[found]?.ids.length ? found : row;
  }

  /* Describes a cell in the line above the map. */
  describe(at, { now = false, aloud = false } = {}) {
    const unit = this.rowUnits[at.row], column = this.columnUnits[at.column];
    clearTimeout(this.timer);
    const ticket = (this.ticket = {});
    if (!unit?.ids.length || !column) { if (column?.isOne && !unit) this.describeCluster(column); return; }
    const counts = this.counts(unit);
    if (unit.isOne && column.isOne) this.describeCopy(unit.ids[0], column.ids[0], this.worst(counts, at.column), { ticket, now, aloud });
    else this.describeGroup(unit, column, counts.slice(at.column * STATE_COUNT, (at.column + 1) * STATE_COUNT), aloud);
  }

  describeCluster(column) {
    const cluster = column.ids[0], labels = fleet.labelsOf(cluster).map(([key, value]) => `${shortKey(key)}=${value}`);
    this.reading.replaceChildren(glyph(fleet.clusterStates[cluster]), h('span', {}, h('b', {}, clusterLink(column.label))), h('span', { class: 'why' }, labels.join(' · ')));
  }

  describeCopy(placement, cluster, state, { ticket, now, aloud }) {
    const id = fleet.ids[placement], name = fleet.clusters[cluster], word = state < 0 ? 'not here' : STATES[state];
    const why = h('span', { class: 'why' });
    this.reading.replaceChildren(...flat([state < 0 ? null : glyph(state), h('span', {}, h('b', {}, placementLink(id)), ' in ', h('b', {}, clusterLink(name)), `: ${word}`), why]));
    const spoken = `${shortName(id)} in ${name}: ${word}`;
    if (aloud) announce(spoken);
    const explain = () => copyReason(id, cluster, state).then((words) => {
      if (ticket !== this.ticket) return;
      why.replaceChildren(...flat(words));
      if (aloud) announce(`${spoken}. ${why.textContent}`);
    }, (fault) => { if (ticket === this.ticket) why.replaceChildren(fault.message); });
    this.timer = setTimeout(explain, now || aloud ? 0 : 90);
  }

  describeGroup(unit, column, counts, aloud) {
    const group = this.columnGroups.find((candidate) => candidate.key === column.group);
    const more = (name, ids) => `${name} and ${number(ids.length - 1)} more`;
    const rowName = unit.isOne ? fleet.names[unit.ids[0]] : this.isWhole ? more(fleet.names[unit.ids[0]], unit.ids) : `${unit.label} (${counted(unit.ids.length, 'placement')})`;
    const columnName = column.isOne ? column.label : this.isWhole ? more(fleet.clusters[column.ids[0]], column.ids) : `${group.label} (${counted(column.ids.length, 'cluster')})`;
    const parts = WORST_FIRST.filter((state) => counts[state]);
    this.reading.replaceChildren(...flat([h('span', {}, h('b', {}, rowName), ' in ', h('b', {}, columnName)), parts.map((state) => h('span', {}, glyph(state), ` ${number(counts[state])} ${STATES[state]}`)), parts.length ? null : h('span', { class: 'why' }, 'nothing placed here')]));
    if (aloud) announce(`${rowName} in ${columnName}: ${parts.map((state) => `${counts[state]} ${STATES[state]}`).join(', ') || 'nothing placed'}`);
  }
}

/* The number of the publication since which each copy is as it is; 0 for one before the page's oldest, null if there is none. */
function copySince(id, details) {
  const clusters = [];
  fleet.eachCopy(fleet.placementOf.get(id), (cluster) => clusters.push(cluster));
  const numbers = spread(details.since, clusters.length), known = new Map(clusters.map((cluster, index) => [cluster, numbers[index]]));
  return (cluster) => (details.objectCount ? known.get(cluster) ?? null : null);
}

/* Why a copy is as it is, and since when; or why there is none. */
async function copyReason(id, cluster, state) {
  const details = await placementDetails(id), reason = details.reasons[spread(details.reasonOf, fleet.clusters.length)[cluster]];
  if (state < 0) return [reason, ' · ', placeLink(details.at)];
  const exception = details.exceptions.find((candidate) => candidate.state === state && positions(candidate.clusters).includes(cluster));
  const since = exception?.since ? [' · since ', when(exception.since)] : '', sequence = copySince(id, details)(cluster);
  const content = sequence === null ? '' : [' · its content is that of ', publicationOrBefore(sequence)];
  return [exception?.words || reason, since, content, exception?.release ? ` · release ${exception.release}` : ''];
}
