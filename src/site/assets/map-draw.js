// The drawing of the map on its canvas. Only what is in view is drawn; what costs much is drawn once for a layout.
'use strict';

/* On a phone, marks are this far below the top of a row, which has the name. */
const BELOW_NAME = 17;
/* The shades of ages: the newest publication, the five before, the twenty before, earlier. */
const ageStep = (ago) => (ago < 1 ? 0 : ago < 6 ? 1 : ago < 21 ? 2 : 3);

Object.assign(FleetMap.prototype, {
  drawSoon() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => { this.isDue = false; this.draw(); });
  },

  draw() {
    if (!this.rowUnits) return;
    const pen = this.pen, density = devicePixelRatio || 1, colours = ink();
    pen.setTransform(density, 0, 0, density, 0, 0);
    pen.textBaseline = 'middle';
    pen.textAlign = 'left';
    this.rectangle(colours.surface, 0, 0, this.viewWidth, this.viewHeight);
    const origin = { x: this.left - this.box.scrollLeft + (this.narrow ? 10 : 0), y: this.top - this.box.scrollTop };
    if (this.isWhole) this.drawWhole(origin); else this.drawCells(origin);
    this.drawCursor(origin);
  },

  rectangle(colour, x, y, width, height) {
    this.pen.fillStyle = colour;
    this.pen.fillRect(x, y, width, height);
  },

  text(words, x, y, { colour = ink().text, weight = 400, size = 12 } = {}) {
    this.pen.font = `${weight} ${size}px ${ink().font}`;
    this.pen.fillStyle = colour;
    const shown = harmless(words);
    this.pen.fillText(shown, x, y);
    return this.pen.measureText(shown).width;
  },

  /* The row and column to set off: under the pointer, else under the cursor. */
  lit() {
    return this.hovered ?? (document.activeElement === this.box ? this.cursor : null) ?? { row: -1, column: -1 };
  },

  visibleRows(origin) {
    const isBelow = (unit) => origin.y + unit.y > this.viewHeight, isAbove = (unit) => origin.y + unit.y + unit.height < this.top;
    return this.rowUnits.filter((unit) => !isAbove(unit) && !isBelow(unit));
  },

  visibleColumns(origin) {
    const found = [];
    this.columnUnits.forEach((unit, index) => { if (origin.x + unit.x + unit.width >= this.left && origin.x + unit.x <= this.viewWidth) found.push([unit, index]); });
    return found;
  },

  drawCells(origin) {
    const colours = ink(), lit = this.lit(), rows = this.visibleRows(origin), columns = this.visibleColumns(origin);
    const row = this.rowUnits[lit.row], column = this.columnUnits[lit.column];
    if (row && !row.isTitle) this.rectangle(colours.soft, 0, origin.y + row.y, this.viewWidth, row.height);
    if (column) this.rectangle(colours.soft, origin.x + column.x, 0, column.width, this.viewHeight);
    for (const unit of rows) if (!unit.isTitle) this.drawRow(unit, columns, origin);
    this.drawColumnNames(origin, column);
    this.drawRowNames(rows, origin, row);
  },

  drawRow(unit, columns, origin) {
    const counts = this.counts(unit), y = origin.y + unit.y + (this.narrow ? BELOW_NAME : 0), height = this.narrow ? unit.height - 22 : unit.height;
    for (const [column, index] of columns) {
      const state = this.worst(counts, index);
      if (state < 0) continue;
      const box = { x: origin.x + column.x, y, w: column.width, h: height }, isOne = unit.isOne && column.isOne;
      this.pen.globalAlpha = isOne && this.is >= 0 && state !== this.is ? .4 : 1;
      if (this.mode === 'wave' && isOne) this.drawWave(unit.ids[0], column.ids[0], box);
      else if (this.mode === 'age') this.drawStep(ageStep(head.shown.sequence - Math.max(...unit.ids.map((placement) => fleet.changedBy[placement]))), box);
      else if (!isOne) this.drawGroup(counts.subarray(index * STATE_COUNT, (index + 1) * STATE_COUNT), box);
      else if (this.narrow && column.width < 9) bar(this.pen, state, box);
      else mark(this.pen, state, box);
      this.pen.globalAlpha = 1;
    }
  },

  drawStep(step, box, share = 1) {
    this.pen.fillStyle = ink().steps[Math.min(3, step)];
    centredSquare(this.pen, box, (Math.min(box.w, box.h, 18) - 2) * share);
  },

  /* The stage of a copy's rollout; small while it waits. */
  drawWave(placement, cluster, box) {
    const wave = this.waves?.get(placement)?.get(fleet.clusters[cluster]);
    if (!wave) { this.pen.globalAlpha = .35; mark(this.pen, PUBLISHED, box); return; }
    if (wave.verdict === 'failed') mark(this.pen, FAILING, box);
    else this.drawStep(wave.stage ?? 0, box, wave.verdict === 'waits' ? .5 : 1);
  },

  /* A group: a dot whose size says how many copies it has, and a block with a number for each state that is not in
     order. The worst is never averaged away. */
  drawGroup(counts, box) {
    const bad = WORST_FIRST.filter((state) => !isInOrder(state) && counts[state]), moving = counts[PROGRESSING] ? PROGRESSING : counts[WAITS] ? WAITS : -1;
    if (box.w < 36) {
      const worst = bad[0] ?? (moving === PROGRESSING ? moving : -1);
      if (worst >= 0) mark(this.pen, worst, box); else this.drawDot(sum(counts), box);
      return;
    }
    this.drawDot(counts[PUBLISHED] + counts[IN_SYNC] + counts[WAITS], { ...box, x: box.x + 2, w: 22 });
    let x = box.x + 27;
    if (moving >= 0) { mark(this.pen, moving, { x, y: box.y + (box.h - 13) / 2, w: 13, h: 13 }); x += 17; }
    this.pen.font = `600 11px ${ink().font}`;
    for (const state of bad) {
      const label = counts[state] > 9999 ? `${Math.round(counts[state] / 1000)}k` : number(counts[state]), width = Math.round(this.pen.measureText(label).width + 10);
      if (x + width > box.x + box.w) { this.pen.fillStyle = ink().states[state]; this.pen.fillText('+', x, box.y + box.h / 2); break; }
      this.drawNumber(state, label, { x, y: Math.round(box.y + (box.h - Math.min(18, box.h - 5)) / 2), w: width, h: Math.min(18, box.h - 5) });
      x += width + 3;
    }
  },

  drawNumber(state, label, box) {
    const pen = this.pen, colours = ink();
    pen.fillStyle = pen.strokeStyle = colours.states[state];
    if (state === SILENT) { pen.lineWidth = 1.2; pen.strokeRect(box.x + .6, box.y + .6, box.w - 1.2, box.h - 1.2); }
    else if (state === DRIFTED) { pen.beginPath(); pen.roundRect(box.x, box.y, box.w, box.h, box.h / 2); pen.fill(); pen.fillStyle = colours.on; }
    else { pen.fillRect(box.x, box.y, box.w, box.h); pen.fillStyle = state === HELD ? '#16110a' : colours.on; }
    if (state === HELD) {
      pen.strokeStyle = colours.surface;
      pen.lineWidth = 1.5;
      pen.beginPath();
      pen.moveTo(box.x, box.y + 5); pen.lineTo(box.x + 5, box.y);
      pen.moveTo(box.x + box.w - 5, box.y + box.h); pen.lineTo(box.x + box.w, box.y + box.h - 5);
      pen.stroke();
    }
    pen.fillText(label, box.x + 5, box.y + box.h / 2 + .5);
  },

  drawDot(count, box) {
    if (!count) return;
    const side = Math.max(3, Math.round(Math.min(box.h - 8, box.w, 18) * Math.sqrt(Math.min(1, count / this.most))));
    this.pen.fillStyle = ink().states[IN_SYNC];
    centredSquare(this.pen, { ...box, w: Math.min(box.w, 22) }, side);
  },

  /* Names of groups and clusters, which stay at the top. */
  drawColumnNames(origin, lit) {
    const colours = ink();
    this.rectangle(colours.surface, 0, 0, this.viewWidth, this.top);
    if (lit) this.rectangle(colours.soft, origin.x + lit.x, 0, lit.width, this.top);
    for (const group of this.columnGroups) this.drawGroupName(group, origin);
    if (this.top <= 30) return;
    // Turned text costs most, so it is drawn once for a layout.
    this.header ??= this.namesOfClusters();
    const { picture, scale } = this.header, hidden = Math.max(0, this.left - origin.x);
    const width = Math.min(this.wide - hidden, this.viewWidth - Math.max(this.left, origin.x));
    if (width > 0) this.pen.drawImage(picture, hidden * scale, 0, width * scale, picture.height, origin.x + hidden, 0, width, picture.height / scale);
    if (lit?.isOne && origin.x + lit.x >= this.left - 1) { this.rectangle(colours.soft, origin.x + lit.x, 24, lit.width, this.top - 24); this.drawClusterName(this.pen, lit, origin.x + lit.x, true); }
  },

  drawGroupName(group, origin) {
    const x = Math.max(this.left + 2, origin.x + group.x), end = Math.min(this.viewWidth, origin.x + group.x + group.width);
    if (end - x < 14) return;
    const pen = this.pen, colours = ink();
    pen.save();
    pen.beginPath(); pen.rect(x, 0, end - x, this.top); pen.clip();
    const width = this.text(group.label, x, 12, { weight: 560, size: this.narrow ? 10 : 12 });
    if (end - x > width + 30) this.text(number(group.ids.length), x + width + 7, 12.5, { colour: colours.muted, size: 11 });
    pen.restore();
    this.rectangle(colours.line, x, 22.5, end - x, 1);
  },

  namesOfClusters() {
    const scale = Math.min(devicePixelRatio || 1, 16000 / Math.max(1, this.wide)), picture = document.createElement('canvas');
    Object.assign(picture, { width: Math.ceil(this.wide * scale) || 1, height: Math.ceil(this.top * scale) });
    const pen = picture.getContext('2d');
    pen.scale(scale, scale);
    pen.textBaseline = 'middle';
    for (const unit of this.columnUnits) this.drawClusterName(pen, unit, unit.x, false);
    return { picture, scale };
  },

  drawClusterName(pen, unit, x, isLit) {
    if (!unit.isOne) return;
    const colours = ink(), state = fleet.clusterStates[unit.ids[0]], isLoud = this.is < 0 && !this.rows && !isInOrder(state);
    pen.fillStyle = isLit ? colours.text : isLoud ? colours.states[state] : colours.muted;
    pen.font = `${isLoud || isLit ? 600 : 400} ${this.isUpright ? 13 : Math.min(11, unit.width - (unit.width < 12 ? 1 : 0))}px ${colours.font}`;
    const middle = x + unit.width / 2;
    if (this.isUpright) {
      const label = harmless(unit.label.length > 10 ? `${unit.label.slice(0, 9)}…` : unit.label);
      pen.textAlign = 'center'; pen.fillText(label, middle, this.top - 8); pen.textAlign = 'left';
      return;
    }
    pen.save();
    pen.translate(middle, this.top - 5);
    pen.rotate(-Math.PI / 2);
    pen.fillText(harmless(unit.label.length > 18 ? `${unit.label.slice(0, 17)}…` : unit.label), 0, 0);
    pen.restore();
  },

  drawRowNames(rows, origin, lit) {
    const colours = ink(), pen = this.pen;
    if (this.left) {
      this.rectangle(colours.surface, 0, 0, this.left, this.viewHeight);
      if (lit && !lit.isTitle) this.rectangle(colours.soft, 0, Math.max(this.top, origin.y + lit.y), this.left, lit.height);
      this.text(`${number(this.rowCount)} × ${number(this.columnCount)}`, 14, 12, { colour: colours.muted, size: 11 });
    }
    pen.save();
    pen.beginPath(); pen.rect(0, this.top, this.narrow ? this.viewWidth : this.left - 6, this.viewHeight); pen.clip();
    for (const unit of rows) this.drawRowName(unit, origin.y + unit.y + (this.narrow ? 9 : unit.height / 2));
    pen.restore();
  },

  drawRowName(unit, y) {
    const muted = { colour: ink().muted, size: 11 };
    if (unit.isHead) this.text(unit.isTitle ? '▾' : '▸', 13, y, muted);
    const x = unit.isHead || !this.narrow ? 26 : 12, width = this.text(unit.label, x, y, { weight: unit.isHead ? 600 : 400, size: 12.5 });
    if (unit.count) this.text(number(unit.count), x + width + 7, y + .5, muted);
  },

  drawCursor(origin) {
    const unit = this.rowUnits[this.cursor?.row], column = this.columnUnits[this.cursor?.column];
    if (!unit || !column || document.activeElement !== this.box) return;
    this.pen.strokeStyle = ink().focus;
    this.pen.lineWidth = 2;
    this.pen.strokeRect(origin.x + column.x + .5, origin.y + unit.y + (this.narrow ? BELOW_NAME : 0) + .5, column.width - 1, unit.height - (this.narrow ? 22 : 0) - 1);
  },

  /* Everything in one small picture, scaled up; failing and held cells larger than the others. */
  drawWhole(origin) {
    this.picture ??= this.wholePicture();
    const pen = this.pen, colours = ink();
    pen.imageSmoothingEnabled = false;
    pen.drawImage(this.picture.canvas, origin.x, origin.y, this.wide, this.tall);
    for (const { x, y, state } of this.picture.urgent) this.rectangle(colours.states[state], origin.x + x - 1, origin.y + y - 1, 5, 5);
    this.drawWholeNames(origin);
  },

  wholePicture() {
    const rows = this.rowUnits.length, columns = this.columnUnits.length, canvas = document.createElement('canvas');
    Object.assign(canvas, { width: columns, height: rows });
    const pen = canvas.getContext('2d'), image = pen.createImageData(columns, rows), urgent = [], shades = wholeShades();
    this.rowUnits.forEach((unit, row) => {
      const counts = this.counts(unit);
      this.columnUnits.forEach((column, index) => {
        const copies = sum(counts.subarray(index * STATE_COUNT, (index + 1) * STATE_COUNT)), state = this.worst(counts, index);
        image.data.set([...shades(state, copies / (unit.ids.length * column.ids.length)), 255], (row * columns + index) * 4);
        if (state >= HELD) urgent.push({ x: column.x, y: unit.y, state });
      });
      this.counted.delete(unit);
    });
    pen.putImageData(image, 0, 0);
    return { canvas, urgent };
  },

  drawWholeNames(origin) {
    const label = fleet.label(this.by);
    let last = -99;
    this.columnUnits.forEach((unit, index) => {
      if (index && unit.group === this.columnUnits[index - 1].group) return;
      const x = origin.x + unit.x;
      this.rectangle(ink().line, x, 20, 1, this.tall + 4);
      if (x - last > 70) { this.text(label.values[unit.group] || 'none', x + 4, 12, { weight: 560 }); last = x; }
    });
    if (this.left) this.drawWholeRowNames(origin);
  },

  drawWholeRowNames(origin) {
    let last = -99;
    this.pen.textAlign = 'right';
    this.rowUnits.forEach((unit, index) => {
      const y = origin.y + unit.y;
      if ((index && unit.group === this.rowUnits[index - 1].group) || y - last <= 12) return;
      this.text(fleet.namespaces[unit.group] || 'cluster-wide', this.left - 8, y + 6, { colour: ink().muted });
      last = y;
    });
    this.pen.textAlign = 'left';
  },
});

/* Returns the colour of a state in the whole picture; of copies in order, the more there are, the stronger. */
function wholeShades() {
  const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true }), colours = ink();
  const channels = (colour) => { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)]; };
  const ground = channels(colours.surface), states = colours.states.map(channels);
  const blend = (colour, share) => ground.map((from, index) => from + (colour[index] - from) * share);
  return (state, share) => {
    if (state < 0) return ground;
    if (state > WAITS) return state === SILENT ? blend(states[SILENT], .62) : states[state];
    return blend(states[IN_SYNC], Math.min(1, .18 + .7 * share));
  };
}
