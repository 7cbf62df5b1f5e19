// One mark for each state, in SVG and on a canvas alike: the more ink, the more urgent. Shape and size say what colour says.
'use strict';

const STATES = ['published', 'in sync', 'waits', 'progressing', 'drifted', 'silent', 'held', 'failing'];
const COLOURS = ['--pub', '--ok', '--prog', '--prog', '--drift', '--silent', '--held', '--fail'];
const [PUBLISHED, IN_SYNC, WAITS, PROGRESSING, DRIFTED, SILENT, HELD, FAILING] = STATES.keys();
/* In the order in which people should see them. */
const WORST_FIRST = [FAILING, HELD, SILENT, DRIFTED, PROGRESSING, WAITS, IN_SYNC, PUBLISHED];
const isInOrder = (state) => state < DRIFTED;
/* The height of a bar on a phone, where a cell is a few pixels wide. */
const BAR_HEIGHTS = [.16, .38, .24, .7, 1, .7, 1, 1];

const FRAME = { x: 1.75, y: 1.75, width: 10.5, height: 10.5, fill: 'none', 'stroke-width': 1.5 };
const BLOCK = { x: 1, y: 1, width: 12, height: 12 };
const SHAPES = [
  (colour) => [svg('rect', { x: 5.5, y: 5.5, width: 3, height: 3, fill: colour })],
  (colour) => [svg('rect', { x: 4, y: 4, width: 6, height: 6, fill: colour })],
  (colour) => [svg('rect', { x: 4.5, y: 4.5, width: 5, height: 5, fill: 'none', stroke: colour, 'stroke-width': 1.5 })],
  (colour) => [svg('rect', { ...FRAME, stroke: colour }), svg('rect', { x: 1, y: 7, width: 12, height: 6, fill: colour })],
  (colour) => [svg('path', { d: 'M7 .5 13.5 7 7 13.5 .5 7Z', fill: colour })],
  (colour) => [svg('rect', { ...FRAME, stroke: colour }), svg('path', { d: 'M4 7h6', stroke: colour, 'stroke-width': 1.6 })],
  (colour) => [svg('rect', { ...BLOCK, fill: colour }), svg('path', { d: 'M1 9 9 1M5 13 13 5', stroke: 'var(--surface)', 'stroke-width': 1.8 })],
  (colour) => [svg('rect', { ...BLOCK, fill: colour }), svg('path', { d: 'm4.5 4.5 5 5m0-5-5 5', stroke: 'var(--on)', 'stroke-width': 1.7 })],
];

function glyph(state, size = 14) {
  return svg('svg', { class: 'g', width: size, height: size, viewBox: '0 0 14 14', 'aria-hidden': 'true' }, SHAPES[state](`var(${COLOURS[state]})`));
}

/* A state with its mark, and other words than its own if given. */
const stateWords = (state, text) => h('span', { class: 'nw st' }, glyph(state), text ?? STATES[state]);

/* The colours of the page's style, for the canvas. */
let inks = null;
function ink() {
  if (inks) return inks;
  const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(name).trim();
  inks = {
    states: COLOURS.map(of), on: of('--on'), surface: of('--surface'), text: of('--ink'), muted: of('--muted'), line: of('--line'), soft: of('--soft'),
    focus: of('--focus'), steps: ['--w1', '--w2', '--w3', '--w4'].map(of), font: style.fontFamily || 'sans-serif',
  };
  return inks;
}

function centredSquare(canvas, box, side) {
  canvas.fillRect(Math.round(box.x + (box.w - side) / 2), Math.round(box.y + (box.h - side) / 2), side, side);
}

function centredFrame(canvas, box, side, width) {
  canvas.lineWidth = width;
  canvas.strokeRect(Math.round(box.x + (box.w - side) / 2) + .5, Math.round(box.y + (box.h - side) / 2) + .5, side - 1, side - 1);
}

/* Draws the mark of a state into a box of the canvas. */
function mark(canvas, state, box) {
  const colours = ink(), size = Math.min(box.w, box.h), margin = size >= 12 ? 1 : size >= 6 ? .5 : 0;
  const side = Math.min(size - 2 * margin, 16);
  const inner = { x: Math.round(box.x + (box.w - side) / 2), y: Math.round(box.y + (box.h - side) / 2), side, middle: [box.x + box.w / 2, box.y + box.h / 2] };
  canvas.fillStyle = canvas.strokeStyle = colours.states[state];
  if (state === IN_SYNC || state === PUBLISHED) centredSquare(canvas, box, Math.max(1, Math.round(side * (state === IN_SYNC ? .42 : .22))));
  else if (side < 6) smallMark(canvas, state, inner);
  else if (state === WAITS) centredFrame(canvas, box, Math.max(3, Math.round(side * .46)), 1.2);
  else if (state === DRIFTED) diamond(canvas, inner);
  else if (state === SILENT) silentMark(canvas, box, inner);
  else if (state === PROGRESSING) progressMark(canvas, inner);
  else fullMark(canvas, state, inner, colours);
}

function smallMark(canvas, state, { x, y, side }) {
  if (state === WAITS) canvas.fillRect(x, y + side / 2 - .5, side, 1);
  else if (state === SILENT) { canvas.fillRect(x, y, side, 1); canvas.fillRect(x, y + side - 1, side, 1); }
  else canvas.fillRect(x, y, side, side);
}

function diamond(canvas, { x, y, side, middle: [cx, cy] }) {
  canvas.beginPath();
  canvas.moveTo(cx, y); canvas.lineTo(x + side, cy); canvas.lineTo(cx, y + side); canvas.lineTo(x, cy);
  canvas.fill();
}

function silentMark(canvas, box, { side, middle: [cx, cy] }) {
  const frame = Math.round(side * .72);
  centredFrame(canvas, box, frame, 1);
  canvas.fillRect(cx - frame * .3, Math.round(cy) - .5, frame * .6, 1);
}

function progressMark(canvas, { x, y, side }) {
  canvas.lineWidth = 1.2;
  canvas.strokeRect(x + .6, y + .6, side - 1.2, side - 1.2);
  canvas.fillRect(x, y + side / 2, side, side / 2);
}

function fullMark(canvas, state, { x, y, side }, colours) {
  canvas.fillRect(x, y, side, side);
  if (state === HELD) hatch(canvas, { x, y, side }, colours.surface);
  if (state === FAILING && side >= 8) {
    const inset = side * .3;
    canvas.strokeStyle = colours.on;
    canvas.lineWidth = 1.4;
    canvas.beginPath();
    canvas.moveTo(x + inset, y + inset); canvas.lineTo(x + side - inset, y + side - inset);
    canvas.moveTo(x + side - inset, y + inset); canvas.lineTo(x + inset, y + side - inset);
    canvas.stroke();
  }
}

function hatch(canvas, { x, y, side }, colour) {
  canvas.save();
  canvas.strokeStyle = colour;
  canvas.lineWidth = Math.max(1, side / 7);
  canvas.beginPath(); canvas.rect(x, y, side, side); canvas.clip();
  canvas.beginPath();
  for (const step of [-1, 0, 1]) { canvas.moveTo(x + step * side * .6, y + side); canvas.lineTo(x + side + step * side * .6, y); }
  canvas.stroke();
  canvas.restore();
}

/* The same on a phone: the taller, the more urgent. */
function bar(canvas, state, box) {
  const colours = ink(), x = Math.round(box.x), width = Math.floor(box.w), bottom = box.y + box.h - 1, height = Math.round(box.h * BAR_HEIGHTS[state]);
  canvas.fillStyle = colours.states[state];
  if (state === SILENT || state === WAITS) {
    for (const [dx, dy, w, tall] of [[0, -height, width - 1, 1], [0, -1, width - 1, 1], [0, -height, 1, height], [width - 2, -height, 1, height]]) canvas.fillRect(x + dx, bottom + dy, w, tall);
  } else canvas.fillRect(x, bottom - height, width - 1, height);
  if (state === HELD) {
    canvas.fillStyle = colours.surface;
    for (const share of [.7, .35]) canvas.fillRect(x, bottom - Math.round(height * share), width - 1, 2);
  }
}
