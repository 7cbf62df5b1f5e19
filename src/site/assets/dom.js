// Elements and words. Every text of a fleet reaches the page as a text node: nothing here parses markup.
'use strict';

const SVG = 'http://www.w3.org/2000/svg';
const HOUR = 3600;
const DAY = 24 * HOUR;
const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

/* Control characters, and those that change the direction of a text. */
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/* Replaces these characters in a text. */
const harmless = (text) => String(text).replace(UNSAFE, '\ufffd');

const byId = (id) => document.getElementById(id);
const mainPart = () => byId('main');

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (name === 'on') for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else if (name === 'css') for (const [property, setting] of Object.entries(value)) element.style.setProperty(property, setting);
    else element.setAttribute(name, value === true ? '' : harmless(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child == null || child === false) continue;
    element.append(child.nodeType ? child : harmless(child));
  }
  return element;
}

/* Makes an element of HTML, or one of SVG. */
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const link = (href, ...children) => h('a', { href }, ...children);
const button = (label, onClick, attributes = {}) => h('button', { class: 'btn', type: 'button', on: { click: onClick }, ...attributes }, label);
const muted = (...children) => h('span', { class: 'muted' }, ...children);
const flat = (children) => children.flat(Infinity).filter((child) => child != null && child !== false);

/* Announces a text to screen readers. */
function announce(text) {
  byId('live').textContent = harmless(text);
}

function show(title, ...children) {
  document.title = harmless(`${title} · ${head.fleet}`);
  mainPart().replaceChildren(...flat(children));
}

const number = (value) => (value < 1000 ? String(value) : String(value).replace(/\B(?=(\d{3})+$)/g, ','));
const counted = (count, noun, nouns = `${noun}s`) => `${number(count)} ${count === 1 ? noun : nouns}`;
const twoDigits = (value) => String(value).padStart(2, '0');
const sum = (values) => values.reduce((total, value) => total + value, 0);

function clock(seconds) {
  const date = new Date(seconds * 1000);
  return `${twoDigits(date.getUTCHours())}:${twoDigits(date.getUTCMinutes())}`;
}

function day(seconds) {
  const date = new Date(seconds * 1000);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
}

/* A duration in its largest unit that fits: `18 min`. */
function duration(seconds) {
  if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 1.5 * HOUR) return `${Math.round(seconds / 60)} min`;
  return seconds < 2 * DAY ? `${Math.round(seconds / HOUR)} h` : `${Math.round(seconds / DAY)} d`;
}

const ago = (seconds) => `${duration(head.asOf - seconds)} ago`;

function when(seconds) {
  const isRecent = head.asOf - seconds < 2 * DAY;
  const exact = `${day(seconds)} ${clock(seconds)}`;
  const attributes = { datetime: new Date(seconds * 1000).toISOString(), title: `${exact} UTC`, class: 'nw' };
  return h('time', attributes, isRecent ? ago(seconds) : exact);
}

/* Lets long paths break after their separators. */
const breakable = (text) => String(text).split(/(?<=[./\]])/).flatMap((part, index) => (index ? [h('wbr', {}), part] : [part]));

function table(caption, columns, rows) {
  const heading = (name) => h('th', { scope: 'col', class: name.startsWith('>') ? 'n' : null }, name.replace('>', ''));
  return h('div', { class: 'wrap', tabindex: 0, role: 'region', 'aria-label': caption },
    h('table', {}, h('caption', { class: 'vh' }, caption), h('thead', {}, h('tr', {}, columns.map(heading))), h('tbody', {}, rows)));
}

const cell = (className, ...children) => h('td', { class: className }, ...children);
const row = (...cells) => h('tr', { class: 'j' }, cells.map((child) => (child?.tagName === 'TD' ? child : h('td', {}, child))));

/* The first rows of a table, and a button for the next ones. */
function firstRows(items, count, form, noun, wrap) {
  const shown = wrap(items.slice(0, count).map(form));
  if (items.length <= count) return shown;
  let next = count;
  const more = button(`${number(items.length - next)} more ${noun}`, () => {
    shown.querySelector('tbody').append(...items.slice(next, next + 200).map(form));
    next += 200;
    if (next >= items.length) more.remove();
    else more.textContent = `${number(items.length - next)} more ${noun}`;
  });
  return [shown, h('p', {}, more)];
}

function copyButton(text) {
  return button('Copy', (event) => {
    const refused = () => announce('the browser does not let this page copy');
    const copied = () => { event.target.textContent = 'Copied'; announce('copied'); };
    if (navigator.clipboard) navigator.clipboard.writeText(harmless(text).replace(/[\n\t]/g, ' ')).then(copied, refused);
    else refused();
  });
}

const toPaste = (text, ...more) => h('p', { class: 'paste' }, h('code', {}, text), copyButton(text), ...more);
